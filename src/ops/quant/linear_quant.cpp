// QuantizeLinear (tag 433), DequantizeLinear (434), DynamicQuantizeLinear (439): y = round(x /
// scale)
// + zero, saturated; per tensor, per axis, or by blocks along an axis.
#include <cmath>
#include <limits>

#include "ops/op_impl.hpp"
#include "ops/quant/quantise.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using rules::Specs;

bool is_quantised(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 ||
         dtype == DType::kUint16;
}

/// Scale of a tensor with shape x: a scalar, one per element of the axis, or blocks along it.
Result<void> check_scale(Specs in, std::size_t k, std::int64_t axis_attr, std::int64_t block) {
  const TensorSpec &x = in[0], &scale = in[k];
  if (rules::product(scale.dims) == Dim(1) && scale.rank() <= 1 && block == 0) return {};
  CYB_ASSIGN(const std::size_t axis, rules::axis(axis_attr, x.rank(), "axis"));
  if (block == 0) return rules::want_dims(in, k, std::span(&x.dims[axis], 1));
  std::vector<Dim> want = x.dims;
  want[axis] = x.dims[axis].is_constant() ? Dim((x.dims[axis].constant() + block - 1) / block)
                                          : Dim::anonymous();
  CYB_TRY(rules::want_rank(in, k, x.rank()));
  return rules::want_dims(in, k, want);
}

Result<void> check(const Attrs& attrs, Specs in) {
  if (attrs.i(1) > (std::int64_t{1} << 31)) return fail(rules::bad_payload("block"));
  CYB_TRY(rules::want_float(in, 1));
  CYB_TRY(check_scale(in, 1, attrs.i(0), attrs.i(1)));
  if (rules::at(in, 2).absent) return {};
  CYB_TRY(rules::want_int(in, 2));
  return check_scale(in, 2, attrs.i(0), attrs.i(1));
}

/// Element of a scale or zero point for each element of x.
class Where {
 public:
  Where(const RefCall& call, const Shape& x, const Shape& scale) {
    if (scale.rank() <= 1 && scale.count() == 1 && call.attrs.i(1) == 0) return;
    const std::size_t axis = ref::axis_of(call.attrs.i(0), x.rank());
    inner_ = ref::extent(x, axis + 1, x.rank());
    n_ = ref::extent(x, axis);
    block_ = static_cast<std::size_t>(call.attrs.i(1));
    blocks_ = block_ == 0 ? 0 : ref::extent(scale, axis);
  }
  std::size_t operator()(std::size_t i) const {
    if (n_ == 0) return 0;
    const std::size_t k = i / inner_ % n_;
    return block_ == 0 ? k : (i / inner_ / n_ * blocks_ + k / block_) * inner_ + i % inner_;
  }

 private:
  std::size_t inner_ = 1, n_ = 0, block_ = 0, blocks_ = 0;
};

constexpr std::array kQuantAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                    AttrSpec{"block", AttrKind::kU32},
                                    AttrSpec{"dtype", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_quantize(const Attrs& attrs, Specs in) {
  if (!rules::is_real(in[0].dtype) && in[0].dtype != DType::kI32)
    return fail(rules::bad_dtype(0, in[0].dtype));
  const auto to = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(2)));
  if (!to || !is_quantised(*to)) return fail(rules::bad_payload("dtype"));
  CYB_TRY(check(attrs, in));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_dtype(in, 2, *to));
  return rules::one(*to, in[0].dims);
}

Result<void> reference_quantize(const RefCall& call) {
  const TensorView &x = call.inputs[0], &scale = call.inputs[1];
  const TensorView zero = ref::input(call, 2);
  const Where where(call, x.shape, scale.shape);
  const ref::Elements<float> scales(scale);
  return ref::visit_int(call.outputs[0].dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    const auto n = static_cast<std::size_t>(x.shape.count());
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t k = where(i);
      const auto v = static_cast<float>(ref::number_at(x, i));
      const std::int64_t z = zero.present() ? ref::integer_at(zero, k) : 0;
      call.outputs[0].as<T>()[i] = quant::quantise<T>(v, scales[k], z);
    }
    return {};
  });
}

constexpr std::array kDequantAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                      AttrSpec{"block", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_dequantize(const Attrs& attrs, Specs in) {
  if (!is_quantised(in[0].dtype) && in[0].dtype != DType::kI32)
    return fail(rules::bad_dtype(0, in[0].dtype));
  CYB_TRY(check(attrs, in));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_dtype(in, 2, in[0].dtype));
  return rules::one(in[1].dtype, in[0].dims);
}

/// (x - zero) · scale in the scale's dtype.
Result<void> reference_dequantize(const RefCall& call) {
  const TensorView &x = call.inputs[0], &scale = call.inputs[1];
  const TensorView zero = ref::input(call, 2);
  const Where where(call, x.shape, scale.shape);
  return ref::visit_real(scale.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> scales(scale);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t k = where(i);
      const std::int64_t z = zero.present() ? ref::integer_at(zero, k) : 0;
      y[i] = static_cast<C>(ref::integer_at(x, i) - z) * scales[k];
    }
    y.finish();
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_dynamic(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kF32));
  return std::vector{TensorSpec{DType::kU8, in[0].dims}, TensorSpec{DType::kF32, {}},
                     TensorSpec{DType::kU8, {}}};
}

/// scale = (max(0, max) - min(0, min)) / 255; zero = round(-min / scale), saturated.
Result<void> reference_dynamic(const RefCall& call) {
  const ref::Elements<float> x(call.inputs[0]);
  float low = 0.0F, high = 0.0F;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return fail(non_finite("DynamicQuantizeLinear", "input 0", i));
    low = std::fmin(low, x[i]);
    high = std::fmax(high, x[i]);
  }
  float scale = (high - low) / 255.0F;
  if (scale == 0.0F) scale = 1.0F;
  const auto zero = quant::quantise<std::uint8_t>(-low, scale, 0);
  for (std::size_t i = 0; i < x.size(); ++i)
    call.outputs[0].as<std::uint8_t>()[i] = quant::quantise<std::uint8_t>(x[i], scale, zero);
  call.outputs[1].as<float>()[0] = scale;
  call.outputs[2].as<std::uint8_t>()[0] = zero;
  return {};
}

}  // namespace

OpImpl impl_QuantizeLinear() {
  return {.attrs = kQuantAttrs, .infer = infer_quantize, .reference = reference_quantize};
}
OpImpl impl_DequantizeLinear() {
  return {.attrs = kDequantAttrs, .infer = infer_dequantize, .reference = reference_dequantize};
}
OpImpl impl_DynamicQuantizeLinear() {
  return {.infer = infer_dynamic, .reference = reference_dynamic};
}

}  // namespace cyb
