// Activations with parameters, on f16, f32 and f64, computed in f64 and rounded once: LeakyRelu,
// Elu, Selu, Celu, HardSigmoid, ThresholdedRelu, Shrink, Swish, Clamp, NanToNum; Glu and PRelu.
#include <cmath>
#include <limits>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// alpha (e^x - 1) below 0, x from there on.
double elu(double x, double alpha) {
  return x > 0.0 || x != x ? x : alpha * math::expm1_f64(x);
}

constexpr std::array kSlope = {AttrSpec{"slope", AttrKind::kF32}};
constexpr std::array kAlpha = {AttrSpec{"alpha", AttrKind::kF32}};
constexpr std::array kSeluAttrs = {AttrSpec{"alpha", AttrKind::kF32},
                                   AttrSpec{"gamma", AttrKind::kF32}};
constexpr std::array kHardAttrs = {AttrSpec{"alpha", AttrKind::kF32},
                                   AttrSpec{"beta", AttrKind::kF32}};
constexpr std::array kShrinkAttrs = {AttrSpec{"lambd", AttrKind::kF32},
                                     AttrSpec{"bias", AttrKind::kF32}};

Result<void> reference_leaky(const RefCall& call) {
  return ref::map_real(
      call, [a = static_cast<double>(call.attrs.f(0))](double x) { return x < 0.0 ? a * x : x; });
}
Result<void> reference_elu(const RefCall& call) {
  return ref::map_real(call,
                       [a = static_cast<double>(call.attrs.f(0))](double x) { return elu(x, a); });
}
Result<void> reference_selu(const RefCall& call) {
  const double a = call.attrs.f(0), gamma = call.attrs.f(1);
  return ref::map_real(call, [=](double x) { return gamma * elu(x, a); });
}
Result<void> reference_celu(const RefCall& call) {
  const double a = call.attrs.f(0);
  return ref::map_real(
      call, [a](double x) { return x > 0.0 || x != x ? x : a * math::expm1_f64(x / a); });
}
Result<void> reference_hard_sigmoid(const RefCall& call) {
  const double a = call.attrs.f(0), b = call.attrs.f(1);
  return ref::map_real(
      call, [=](double x) { return x != x ? x : std::fmax(0.0, std::fmin(1.0, a * x + b)); });
}
Result<void> reference_thresholded(const RefCall& call) {
  return ref::map_real(call, [a = static_cast<double>(call.attrs.f(0))](double x) {
    return x > a || x != x ? x : 0.0;
  });
}
Result<std::vector<TensorSpec>> infer_shrink(const Attrs& attrs, Specs in) {
  return rules::same_number(attrs, in);
}
Result<void> reference_shrink(const RefCall& call) {
  const double lambd = call.attrs.f(0), bias = call.attrs.f(1);
  return ref::map_number(call, [=]<class C>(C v) {
    const auto x = static_cast<double>(v);
    if (x < -lambd) return static_cast<C>(x + bias);
    if (x > lambd) return static_cast<C>(x - bias);
    return x != x ? v : C{0};
  });
}
Result<void> reference_swish(const RefCall& call) {
  return ref::map_real(
      call, [a = static_cast<double>(call.attrs.f(0))](double x) { return math::swish_f64(x, a); });
}

constexpr std::array kClampAttrs = {
    AttrSpec{"has_min", AttrKind::kU8}, AttrSpec{"min", AttrKind::kF32},
    AttrSpec{"has_max", AttrKind::kU8}, AttrSpec{"max", AttrKind::kF32}};

Result<void> reference_clamp(const RefCall& call) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double low = call.attrs.i(0) != 0 ? static_cast<double>(call.attrs.f(1)) : -kInf;
  const double high = call.attrs.i(2) != 0 ? static_cast<double>(call.attrs.f(3)) : kInf;
  return ref::map_real(call, [=](double x) {
    if (x < low) x = low;
    return x > high ? high : x;
  });
}

constexpr std::array kNanAttrs = {AttrSpec{"nan", AttrKind::kF32},
                                  AttrSpec{"posinf", AttrKind::kF32},
                                  AttrSpec{"neginf", AttrKind::kF32}};

Result<void> reference_nan_to_num(const RefCall& call) {
  const double nan = call.attrs.f(0), positive = call.attrs.f(1), negative = call.attrs.f(2);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return ref::map_real(call, [=](double x) {
    if (x != x) return nan;
    if (x == kInf) return positive;
    return x == -kInf ? negative : x;
  });
}

/// x [..., 2F] = [a|b]: a sigmoid(b).
Result<std::vector<TensorSpec>> infer_glu(const Attrs&, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  const Dim& last = in[0].dims.back();
  if (last.is_constant() && last.constant() % 2 != 0) {
    return fail(rules::bad_shape(dims_text(in[0].dims), "an even last dimension"));
  }
  return rules::one(in[0].dtype,
                    rules::with_last(in[0], last.divided_by(2).value_or(Dim::anonymous())));
}

Result<void> reference_glu(const RefCall& call) {
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    const auto f = static_cast<std::size_t>(call.outputs[0].shape.back());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t at = i / f * 2 * f + i % f;
      const auto gate = static_cast<C>(math::sigmoid_f64(static_cast<double>(x[at + f])));
      y[i] = x[at] * gate;
    }
    y.finish();
    return {};
  });
}

/// The slope has one value, one per channel (rank 1), or broadcasts to x (any other rank).
bool per_channel(const Shape& x, const Shape& slope) {
  return slope.rank() == 1 && x.rank() >= 2 && slope[0] == x[1];
}

Result<std::vector<TensorSpec>> infer_prelu(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  const TensorSpec &x = in[0], &a = in[1];
  const bool channels = a.rank() == 1 && x.rank() >= 2 && rules::merge(a.dims[0], x.dims[1]);
  if (!channels) {
    CYB_ASSIGN(const std::vector<Dim> dims, rules::broadcast(x, a));
    CYB_TRY(rules::want_dims(in, 0, dims));
  }
  return rules::one(x.dtype, x.dims);
}

Result<void> reference_prelu(const RefCall& call) {
  const Shape &shape = call.inputs[0].shape, &slope = call.inputs[1].shape;
  ref::Strides strides{};
  if (per_channel(shape, slope)) {
    strides[1] = 1;
  } else {
    strides = ref::broadcast_strides(shape, slope);
  }
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), a(call.inputs[1]);
    ref::Outputs<C> y(call.outputs[0]);
    ref::for_each_index(shape, [&](std::size_t i, const ref::Index& index) {
      const C slope_value = a[ref::dot(index, strides, shape.rank())];
      y[i] = x[i] < C{0} ? ref::multiply(slope_value, x[i]) : x[i];
    });
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_LeakyRelu() {
  return {.attrs = kSlope, .infer = rules::same_real, .reference = reference_leaky};
}
OpImpl impl_Elu() {
  return {.attrs = kAlpha, .infer = rules::same_real, .reference = reference_elu};
}
OpImpl impl_Selu() {
  return {.attrs = kSeluAttrs, .infer = rules::same_real, .reference = reference_selu};
}
OpImpl impl_Celu() {
  return {.attrs = kAlpha, .infer = rules::same_real, .reference = reference_celu};
}
OpImpl impl_HardSigmoid() {
  return {.attrs = kHardAttrs, .infer = rules::same_real, .reference = reference_hard_sigmoid};
}
OpImpl impl_ThresholdedRelu() {
  return {.attrs = kAlpha, .infer = rules::same_real, .reference = reference_thresholded};
}
OpImpl impl_Shrink() {
  return {.attrs = kShrinkAttrs, .infer = infer_shrink, .reference = reference_shrink};
}
OpImpl impl_Swish() {
  return {.attrs = kAlpha, .infer = rules::same_real, .reference = reference_swish};
}
OpImpl impl_Clamp() {
  return {.attrs = kClampAttrs, .infer = rules::same_real, .reference = reference_clamp};
}
OpImpl impl_NanToNum() {
  return {.attrs = kNanAttrs, .infer = rules::same_real, .reference = reference_nan_to_num};
}
OpImpl impl_Glu() {
  return {.infer = infer_glu, .reference = reference_glu};
}
OpImpl impl_PRelu() {
  return {.infer = infer_prelu, .reference = reference_prelu};
}

}  // namespace cyb
