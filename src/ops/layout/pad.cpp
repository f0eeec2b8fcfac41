// Pad (tag 282) by attributes, PadBy (374) by tensors, CenterCropPad (391). Modes: 0 constant,
// 1 reflect, 2 edge, 3 wrap; negative amounts crop.
#include <algorithm>
#include <cmath>

#include "ops/layout/convert.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

struct Amount {
  std::int64_t before = 0, after = 0;
};
using Amounts = std::array<Amount, Shape::kMaxRank>;

enum Mode : std::int64_t { kConstant, kReflect, kEdge, kWrap };

/// Index into a dimension of n elements for position i (may be outside); -1: the constant.
std::int64_t source_of(std::int64_t i, std::int64_t n, std::int64_t mode) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case kConstant:
      return -1;
    case kEdge:
      return i < 0 ? 0 : n - 1;
    case kWrap:
      return (i % n + n) % n;
    default: {
      if (n == 1) return 0;
      const std::int64_t period = 2 * (n - 1), at = (i % period + period) % period;
      return at < n ? at : period - at;
    }
  }
}

Result<Dim> padded(const Dim& dim, const Amount& amount, std::int64_t mode) {
  Dim out = dim + Dim(amount.before) + Dim(amount.after);
  const bool negative = out.is_constant() && out.constant() < 0;
  const bool from_nothing =
      dim == Dim(0) && mode != kConstant && (amount.before > 0 || amount.after > 0);
  if (negative || from_nothing) return fail(rules::bad_payload("pads"));
  return out;
}

template <class T>
void pad_as(const RefCall& call, const Amounts& amounts, std::int64_t mode, T value) {
  const Shape& shape = call.inputs[0].shape;
  const auto strides = ref::strides_of(shape);
  ref::for_each_index(call.outputs[0].shape, [&](std::size_t i, const ref::Index& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.rank() && at >= 0; ++d) {
      const std::int64_t k =
          source_of(static_cast<std::int64_t>(index[d]) - amounts[d].before, shape[d], mode);
      at = k < 0 ? -1 : at + k * static_cast<std::int64_t>(strides[d]);
    }
    call.outputs[0].as<T>()[i] = at < 0 ? value : call.inputs[0].as<T>()[at];
  });
}

/// The value's bytes in the tensor's own dtype; zeros if it is absent.
Result<void> pad_all(const RefCall& call, const Amounts& amounts, std::int64_t mode,
                     const std::byte* value) {
  return ref::visit_size(call.inputs[0].dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    T fill{};
    if (value != nullptr) std::memcpy(&fill, value, sizeof(T));
    pad_as<T>(call, amounts, mode, fill);
    return {};
  });
}

constexpr std::array kAttrs = {AttrSpec{"pads", AttrKind::kI64List},
                               AttrSpec{"mode", AttrKind::kU8}, AttrSpec{"value", AttrKind::kF32}};

constexpr std::int64_t kMaxPad = std::int64_t{1} << 40;

Result<std::vector<TensorSpec>> infer_pad(const Attrs& attrs, Specs in) {
  if (!rules::is_element(in[0].dtype)) return fail(rules::bad_dtype(0, in[0].dtype));
  CYB_TRY(rules::want_at_most(attrs, 1, kWrap, "mode"));
  const auto& pads = attrs.list(0);
  if (pads.size() != 2 * in[0].rank()) return fail(rules::bad_payload("pads"));
  std::vector<Dim> dims = in[0].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (std::abs(pads[2 * d]) > kMaxPad || std::abs(pads[2 * d + 1]) > kMaxPad)
      return fail(rules::bad_payload("pads"));
    CYB_ASSIGN(dims[d], padded(dims[d], {pads[2 * d], pads[2 * d + 1]}, attrs.i(1)));
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_pad(const RefCall& call) {
  Amounts amounts{};
  const auto& pads = call.attrs.list(0);
  for (std::size_t d = 0; 2 * d < pads.size(); ++d) amounts[d] = {pads[2 * d], pads[2 * d + 1]};
  const auto value = static_cast<double>(call.attrs.f(2));
  std::array<std::byte, 8> bytes{};
  const MutableTensorView scalar{call.inputs[0].dtype, Shape{}, bytes.data()};
  const DType number = scalar.dtype == DType::kBool ? DType::kU8 : scalar.dtype;
  ref::visit_number(number, [&]<class C>(ref::Type<C>) {
    ref::Outputs<C> out(scalar);
    out[0] =
        scalar.dtype == DType::kBool ? static_cast<C>(value != 0.0 ? 1 : 0) : convert::to<C>(value);
    out.finish();
  });
  return pad_all(call, amounts, call.attrs.i(1), bytes.data());
}

constexpr std::array kByAttrs = {AttrSpec{"mode", AttrKind::kU8}};

/// Amounts per axis from pads (all befores, then all afters) and axes.
Result<Amounts> amounts_of(std::span<const std::int64_t> pads, std::span<const std::int64_t> axes,
                           bool has_axes, std::size_t rank) {
  const std::size_t n = has_axes ? axes.size() : rank;
  if (pads.size() != 2 * n) return fail(rules::bad_payload("pads"));
  Amounts out{};
  for (std::size_t i = 0; i < n; ++i) {
    CYB_ASSIGN(const std::size_t axis,
               rules::axis(has_axes ? axes[i] : static_cast<std::int64_t>(i), rank, "axes"));
    if (std::abs(pads[i]) > kMaxPad || std::abs(pads[n + i]) > kMaxPad)
      return fail(rules::bad_payload("pads"));
    out[axis] = {pads[i], pads[n + i]};
  }
  return out;
}

Result<std::vector<TensorSpec>> infer_pad_by(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_at_most(attrs, 0, kWrap, "mode"));
  CYB_TRY(rules::want_list(in, 1));
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_dtype(in, 2, in[0].dtype));
    if (!(rules::product(in[2].dims) == Dim(1)))
      return fail(rules::bad_shape(dims_text(in[2].dims), "one value"));
  }
  const bool has_axes = !rules::at(in, 3).absent;
  if (has_axes) CYB_TRY(rules::want_list(in, 3));
  const auto pads = rules::constants_of(in, 1), axes = rules::constants_of(in, 3);
  std::vector<Dim> dims(in[0].rank(), Dim::anonymous());
  if (!pads || (has_axes && !axes)) return rules::one(in[0].dtype, std::move(dims));
  const std::vector<std::int64_t> none;
  CYB_ASSIGN(const Amounts amounts,
             amounts_of(*pads, has_axes ? *axes : none, has_axes, in[0].rank()));
  for (std::size_t d = 0; d < dims.size(); ++d) {
    CYB_ASSIGN(dims[d], padded(in[0].dims[d], amounts[d], attrs.i(0)));
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_pad_by(const RefCall& call) {
  const TensorView axes = ref::input(call, 3), value = ref::input(call, 2);
  CYB_ASSIGN(const Amounts amounts, amounts_of(ref::integers(call.inputs[1]), ref::integers(axes),
                                               axes.present(), call.inputs[0].shape.rank()));
  return pad_all(call, amounts, call.attrs.i(0), value.data);
}

constexpr std::array kCropAttrs = {AttrSpec{"axes", AttrKind::kI32List}};

Result<std::vector<TensorSpec>> infer_crop(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  const auto& axes = attrs.list(0);
  std::vector<Dim> dims = in[0].dims;
  const auto* shape = rules::value_of(in, 1);
  const std::size_t n = axes.empty() ? dims.size() : axes.size();
  if (shape != nullptr && shape->size() != n)
    return fail(rules::bad_shape(dims_text(in[1].dims), "one length per axis"));
  for (std::size_t i = 0; i < n; ++i) {
    CYB_ASSIGN(
        const std::size_t axis,
        rules::axis(axes.empty() ? static_cast<std::int64_t>(i) : axes[i], dims.size(), "axes"));
    dims[axis] = shape != nullptr ? (*shape)[i] : Dim::anonymous();
  }
  return rules::one(in[0].dtype, std::move(dims));
}

/// Crops ((n - m) / 2 from the front) or pads ((m - n) / 2 in front) each axis to its length.
Result<void> reference_crop(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  Amounts amounts{};
  for (std::size_t d = 0; d < x.rank(); ++d) {
    const std::int64_t gap = y[d] - x[d];
    const std::int64_t before = gap >= 0 ? gap / 2 : -(-gap / 2);
    amounts[d] = {before, gap - before};
  }
  return pad_all(call, amounts, kConstant, nullptr);
}

}  // namespace

OpImpl impl_Pad() {
  return {.attrs = kAttrs, .infer = infer_pad, .reference = reference_pad};
}
OpImpl impl_PadBy() {
  return {.attrs = kByAttrs, .infer = infer_pad_by, .reference = reference_pad_by};
}
OpImpl impl_CenterCropPad() {
  return {.attrs = kCropAttrs, .infer = infer_crop, .reference = reference_crop};
}

}  // namespace cyb
