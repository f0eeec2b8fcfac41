// Tensors of every dtype as their type of computation: float for f32, f16 and bf16, double for f64,
// the integers and bool as themselves. f16 results are rounded once, by finish().
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/half.hpp"
#include "ops/values.hpp"

namespace cyb::ref {

template <class T>
struct Type {
  using type = T;
};

/// Element i of an integer or bool tensor; unsigned 64-bit values beyond i64 saturate.
std::int64_t integer_at(const TensorView& view, std::size_t i) noexcept;
/// Element i of any element dtype as f64.
double number_at(const TensorView& view, std::size_t i) noexcept;
/// All elements of an integer tensor; empty for an absent one.
std::vector<std::int64_t> integers(const TensorView& view);

/// f(Type<float or double>) for f16, f32, f64; the caller's shape rule lets no other dtype in.
template <class F>
auto visit_real(DType dtype, F f) {
  if (dtype == DType::kF64) return f(Type<double>{});
  return f(Type<float>{});
}

/// f(Type<integer>) for the integer dtypes.
template <class F>
auto visit_int(DType dtype, F f) {
  switch (dtype) {
    case DType::kI8:
      return f(Type<std::int8_t>{});
    case DType::kU8:
      return f(Type<std::uint8_t>{});
    case DType::kI16:
      return f(Type<std::int16_t>{});
    case DType::kUint16:
      return f(Type<std::uint16_t>{});
    case DType::kI32:
      return f(Type<std::int32_t>{});
    case DType::kUint32:
      return f(Type<std::uint32_t>{});
    case DType::kUint64:
      return f(Type<std::uint64_t>{});
    default:
      return f(Type<std::int64_t>{});
  }
}

/// Real and integer dtypes.
template <class F>
auto visit_number(DType dtype, F f) {
  if (format_info(dtype).cls == DTypeClass::kInt) return visit_int(dtype, f);
  return visit_real(dtype, f);
}

/// f(Type<unsigned of the element's size>): what layout ops move.
template <class F>
auto visit_size(DType dtype, F f) {
  switch (element_bytes(dtype)) {
    case 1:
      return f(Type<std::uint8_t>{});
    case 2:
      return f(Type<std::uint16_t>{});
    case 4:
      return f(Type<std::uint32_t>{});
    default:
      return f(Type<std::uint64_t>{});
  }
}

/// Elements of a tensor as C: in place, or decoded to float.
template <class C>
class Elements {
 public:
  explicit Elements(const TensorView& view) {
    if (!view.present()) return;
    size_ = static_cast<std::size_t>(view.shape.count());
    data_ = view.as<C>();
    if constexpr (std::is_same_v<C, float>) {
      if (view.dtype == DType::kF32) return;
      own_ = std::make_unique_for_overwrite<float[]>(std::max<std::size_t>(size_, 1));
      format_info(view.dtype).decode(view.data, own_.get(), size_);
      data_ = own_.get();
    }
    if constexpr (std::is_same_v<C, double>) {
      if (view.dtype == DType::kF64) return;
      own_ = std::make_unique_for_overwrite<double[]>(std::max<std::size_t>(size_, 1));
      for (std::size_t i = 0; i < size_; ++i) own_[i] = number_at(view, i);
      data_ = own_.get();
    }
  }
  const C* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// Only of an input that is present().
  const C& operator[](std::size_t i) const noexcept {
    return data_[i];  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn)
  }
  bool present() const noexcept { return data_ != nullptr; }

 private:
  std::unique_ptr<C[]> own_;
  const C* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An output as C: in place, or a float copy that finish() rounds to f16.
template <class C>
class Outputs {
 public:
  explicit Outputs(const MutableTensorView& view) : view_(view), data_(view.as<C>()) {
    if constexpr (std::is_same_v<C, float>) {
      if (view.dtype == DType::kF32) return;
      own_ = std::make_unique_for_overwrite<float[]>(std::max<std::size_t>(size(), 1));
      data_ = own_.get();
    }
  }
  C* data() noexcept { return data_; }
  C& operator[](std::size_t i) noexcept { return data_[i]; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.shape.count()); }
  void finish() noexcept {
    if constexpr (std::is_same_v<C, float>) {
      if (own_ == nullptr) return;
      auto* out = view_.as<std::uint16_t>();
      for (std::size_t i = 0; i < size(); ++i) {
        out[i] = view_.dtype == DType::kBf16 ? f32_to_bf16(data_[i]) : f32_to_f16(data_[i]);
      }
    }
  }

 private:
  MutableTensorView view_;
  std::unique_ptr<C[]> own_;
  C* data_ = nullptr;
};

/// The reference order of summation (8 lanes), for any type; integers wrap.
template <class C>
class Sum {
 public:
  void add(C v) noexcept { add_at(next_++, v); }
  /// The term with index k (its lane is k mod 8).
  void add_at(std::size_t k, C v) noexcept {
    C& lane = lanes_[k % kLanes];
    lane = wrap_add(lane, v);
  }
  C value() const noexcept {
    const auto f = [](C a, C b) { return wrap_add(a, b); };
    const auto& l = lanes_;
    return f(f(f(l[0], l[4]), f(l[2], l[6])), f(f(l[1], l[5]), f(l[3], l[7])));
  }

 private:
  static C wrap_add(C a, C b) noexcept {
    if constexpr (std::is_integral_v<C>) {
      return static_cast<C>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      return a + b;
    }
  }
  std::array<C, kLanes> lanes_{};
  std::size_t next_ = 0;
};

/// a · b; integers wrap.
template <class C>
C multiply(C a, C b) noexcept {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// Elementwise real function of one input: f(double) for every real dtype, rounded once.
template <class F>
Result<void> map_real(const RefCall& call, F f) {
  return visit_real(call.inputs[0].dtype, [&]<class C>(Type<C>) -> Result<void> {
    const Elements<C> x(call.inputs[0]);
    Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<C>(f(static_cast<double>(x[i])));
    y.finish();
    return {};
  });
}

/// Elementwise function of one input in its own type, for numbers.
template <class F>
Result<void> map_number(const RefCall& call, F f) {
  return visit_number(call.inputs[0].dtype, [&]<class C>(Type<C>) -> Result<void> {
    const Elements<C> x(call.inputs[0]);
    Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
    y.finish();
    return {};
  });
}

using Strides = std::array<std::size_t, Shape::kMaxRank>;

/// Row-major strides in elements.
inline Strides strides_of(const Shape& shape) noexcept {
  Strides strides{};
  std::size_t stride = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    strides[i] = stride;
    stride *= extent(shape, i);
  }
  return strides;
}

/// Strides of `operand` along the dimensions of `out`, right-aligned; 0 where it broadcasts.
inline Strides broadcast_strides(const Shape& out, const Shape& operand) noexcept {
  Strides strides{};
  const std::size_t shift = out.rank() - operand.rank();
  const Strides own = strides_of(operand);
  for (std::size_t i = 0; i < operand.rank(); ++i) {
    if (operand[i] != 1) strides[shift + i] = own[i];
  }
  return strides;
}

using Index = std::array<std::size_t, Shape::kMaxRank>;

/// f(flat, index) for every element of a shape, row-major.
template <class F>
void for_each_index(const Shape& shape, F f) {
  const auto n = static_cast<std::size_t>(shape.count());
  Index at{};
  for (std::size_t i = 0; i < n; ++i) {
    f(i, std::as_const(at));
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (++at[d] < extent(shape, d)) break;
      at[d] = 0;
    }
  }
}

inline std::size_t dot(const Index& index, const Strides& strides, std::size_t rank) noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < rank; ++i) at += index[i] * strides[i];
  return at;
}

/// Axis of a checked attribute or value: negative counts from the end.
inline std::size_t axis_of(std::int64_t axis, std::size_t rank) noexcept {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// A tensor as [outer, n, inner] around one axis.
struct AxisView {
  std::size_t outer, n, inner;
  AxisView(const Shape& shape, std::size_t axis)
      : outer(extent(shape, 0, axis)),
        n(extent(shape, axis)),
        inner(extent(shape, axis + 1, shape.rank())) {}
  /// Offset of element 0 of line `line` of outer · inner; elements are `inner` apart.
  std::size_t base(std::size_t line) const noexcept {
    return line / inner * n * inner + line % inner;
  }
  std::size_t lines() const noexcept { return outer * inner; }
};

}  // namespace cyb::ref
