// What the references share: f32 views of tensors of any dtype, and sums in the reference order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "ops/op.hpp"

namespace cyb::ref {

inline constexpr std::size_t kLanes = 8;
using Lanes = std::array<float, kLanes>;

/// Spec ir section 4: ((l0+l4)+(l2+l6))+((l1+l5)+(l3+l7)).
inline float fold(const Lanes& l) noexcept {
  return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
}

/// Sum of a[k]·b[k] in the reference order: element k goes to lane k mod 8, no fused multiply-add.
float dot(const float* a, const float* b, std::size_t n) noexcept;
/// Sum of x[k] in the reference order.
float sum(const float* x, std::size_t n) noexcept;

/// Dimension i as an index type.
inline std::size_t extent(const Shape& shape, std::size_t i) noexcept {
  return static_cast<std::size_t>(shape[i]);
}
/// Product of the dimensions [begin, end).
inline std::size_t extent(const Shape& shape, std::size_t begin, std::size_t end) noexcept {
  std::size_t n = 1;
  for (std::size_t i = begin; i < end; ++i) n *= extent(shape, i);
  return n;
}
inline std::size_t element_bytes(DType dtype) noexcept {
  return format_info(dtype).block_bytes;
}

/// Input k of a call; an absent view past the end.
inline TensorView input(const RefCall& call, std::size_t k) noexcept {
  return k < call.inputs.size() ? call.inputs[k] : TensorView{};
}

/// A tensor as f32: in place where it is f32, else a decoded copy.
class Values {
 public:
  explicit Values(const TensorView& view);
  const float* data() const noexcept { return data_; }
  /// Number of values.
  std::size_t size() const noexcept { return size_; }
  const float& operator[](std::size_t i) const noexcept { return data_[i]; }
  bool present() const noexcept { return data_ != nullptr; }

 private:
  std::unique_ptr<float[]> own_;
  const float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An output as f32: in place where it is f32; f16 is rounded once by finish().
class Results {
 public:
  explicit Results(const MutableTensorView& view);
  float* data() noexcept { return data_; }
  void finish() noexcept;

 private:
  MutableTensorView view_;
  std::unique_ptr<float[]> own_;
  float* data_ = nullptr;
};

/// A matrix [N, K] of any weight dtype, read row by row.
class Rows {
 public:
  /// The last dimension is a row; the others count rows.
  explicit Rows(const TensorView& matrix) noexcept;
  std::size_t count() const noexcept { return count_; }
  std::size_t length() const noexcept { return length_; }
  /// Row r as f32; `scratch` (length() floats) holds it where it must be decoded.
  const float* read(std::size_t r, float* scratch) const noexcept;

 private:
  TensorView matrix_;
  std::size_t count_ = 0, length_ = 0, row_bytes_ = 0;
};

/// Runs body(begin, end) over a partition of [0, n), on the call's threads if it has any and
/// `work` (operations in total) is worth it. The body must write only what belongs to its range.
void parallel(ThreadPool* pool, std::size_t n, std::size_t work,
              const std::function<void(std::size_t, std::size_t)>& body);

/// y = the f32 values of x, of any weight dtype.
inline Result<void> decode(const RefCall& call) {
  const Values x(call.inputs[0]);
  std::copy_n(x.data(), x.size(), call.outputs[0].as<float>());
  return {};
}

/// Elementwise f32 function of one input.
template <class F>
Result<void> map(const RefCall& call, F f) {
  const Values x(call.inputs[0]);
  Results y(call.outputs[0]);
  for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = f(x[i]);
  y.finish();
  return {};
}

}  // namespace cyb::ref
