// NoiseSchedule (tag 140): the steps of a sampler, descending. FlowStep (141): one affine coupling.
#include <algorithm>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Kind : std::int64_t { kLinear, kScaledLinear, kCosine, kFlow };

constexpr std::array kScheduleAttrs = {
    AttrSpec{"kind", AttrKind::kU8},   AttrSpec{"train", AttrKind::kU32},
    AttrSpec{"steps", AttrKind::kU32}, AttrSpec{"beta0", AttrKind::kF32},
    AttrSpec{"beta1", AttrKind::kF32}, AttrSpec{"shift", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_schedule(const Attrs& attrs, Specs) {
  CYB_TRY(rules::want_at_most(attrs, 0, kFlow, "kind"));
  if (attrs.i(1) < 1 || attrs.i(1) > (1 << 24)) return fail(rules::bad_payload("train"));
  if (attrs.i(2) < 1 || attrs.i(2) > attrs.i(1)) return fail(rules::bad_payload("steps"));
  for (std::size_t k = 3; k < 6; ++k) {
    if (!std::isfinite(attrs.f(k)) || attrs.f(k) < 0.0F)
      return fail(rules::bad_payload(kScheduleAttrs[k].name));
  }
  const Dim n = attrs.i(2);
  return std::vector{TensorSpec{DType::kF32, {n}}, TensorSpec{DType::kF32, {n + Dim(1)}}};
}

/// cos^2 of Nichol and Dhariwal (arXiv 2102.09672), s = 0.008.
double alpha_bar(double t) {
  constexpr double kHalfPi = 0x1.921FB54442D18p+0;
  const double c = math::sincos_f64((t + 0.008) / 1.008 * kHalfPi).cos;
  return c * c;
}

/// sqrt((1 - a) / a), a the product of 1 - beta, for each training step.
std::vector<double> train_sigmas(const Attrs& attrs) {
  const auto n = static_cast<std::size_t>(attrs.i(1));
  const double b0 = attrs.f(3), b1 = attrs.f(4);
  std::vector<double> out(n);
  double product = 1.0;
  for (std::size_t t = 0; t < n; ++t) {
    const double at = n > 1 ? static_cast<double>(t) / static_cast<double>(n - 1) : 0.0;
    double beta = b0 + (b1 - b0) * at;
    if (attrs.i(0) == kScaledLinear) {
      const double root = std::sqrt(b0) + (std::sqrt(b1) - std::sqrt(b0)) * at;
      beta = root * root;
    }
    if (attrs.i(0) == kCosine) {
      const double now = static_cast<double>(t) / static_cast<double>(n),
                   next = static_cast<double>(t + 1) / static_cast<double>(n);
      beta = std::fmin(1.0 - alpha_bar(next) / alpha_bar(now), 0.999);
    }
    product *= 1.0 - beta;
    out[t] = std::sqrt((1.0 - product) / product);
  }
  return out;
}

/// Flow: u = 1 - i/steps, sigma = s u / (1 + (s - 1) u), t = sigma · train. Else evenly spaced
/// training steps from the last down to 0, and their sigma. The last sigma is 0.
Result<void> reference_schedule(const RefCall& call) {
  const Attrs& a = call.attrs;
  auto *t = call.outputs[0].as<float>(), *sigma = call.outputs[1].as<float>();
  const auto steps = static_cast<std::size_t>(a.i(2));
  const auto train = static_cast<double>(a.i(1));
  const std::vector<double> sigmas = a.i(0) == kFlow ? std::vector<double>{} : train_sigmas(a);
  for (std::size_t i = 0; i < steps; ++i) {
    if (a.i(0) == kFlow) {
      const double u = 1.0 - static_cast<double>(i) / static_cast<double>(steps), s = a.f(5);
      const double v = s * u / (1.0 + (s - 1.0) * u);
      t[i] = static_cast<float>(v * train);
      sigma[i] = static_cast<float>(v);
      continue;
    }
    const double step = steps > 1 ? (train - 1.0) * static_cast<double>(steps - 1 - i) /
                                        static_cast<double>(steps - 1)
                                  : train - 1.0;
    const auto at = static_cast<std::size_t>(step);
    const double share = step - std::floor(step),
                 next = at + 1 < sigmas.size() ? sigmas[at + 1] : sigmas[at];
    t[i] = static_cast<float>(step);
    sigma[i] = static_cast<float>(sigmas[at] * (1.0 - share) + next * share);
  }
  sigma[steps] = 0.0F;
  return {};
}

constexpr std::array kFlowAttrs = {AttrSpec{"inverse", AttrKind::kU8},
                                   AttrSpec{"flip", AttrKind::kU8}};

/// x [B,2C,L] = [a|b], m [B,C,L], logs [B,C,L]?.
Result<std::vector<TensorSpec>> infer_flow(const Attrs&, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  CYB_TRY(rules::want_rank(in, 0, 3));
  const auto half = in[0].dims[1].divided_by(2);
  if (!half && in[0].dims[1].is_constant())
    return fail(rules::bad_shape(dims_text(in[0].dims), "an even number of channels"));
  const std::array want = {in[0].dims[0], half.value_or(Dim::anonymous()), in[0].dims[2]};
  CYB_TRY(rules::want_dims(in, 1, want));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_dims(in, 2, want));
  return rules::one(in[0].dtype, in[0].dims);
}

/// b e^logs + m, or (b - m) e^-logs; flip reverses the channels afterwards, or before if inverse.
Result<void> reference_flow(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t channels = ref::extent(shape, 1), half = channels / 2,
                    length = ref::extent(shape, 2);
  const bool inverse = call.attrs.i(0) != 0, flip = call.attrs.i(1) != 0;
  const ref::Values x(call.inputs[0]), m(call.inputs[1]), logs(ref::input(call, 2));
  ref::Results y(call.outputs[0]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t b = i / (channels * length), c = i / length % channels, l = i % length;
    const auto at = [&](std::size_t channel) { return (b * channels + channel) * length + l; };
    const std::size_t from = flip && inverse ? channels - 1 - c : c,
                      to = flip && !inverse ? channels - 1 - c : c;
    float v = x[at(from)];
    if (c >= half) {
      const std::size_t k = (b * half + (c - half)) * length + l;
      const float e = logs.present() ? math::exp_f32(inverse ? -logs[k] : logs[k]) : 1.0F;
      v = inverse ? (v - m[k]) * e : v * e + m[k];
    }
    y.data()[at(to)] = v;
  }
  y.finish();
  return {};
}

}  // namespace

OpImpl impl_NoiseSchedule() {
  return {.attrs = kScheduleAttrs, .infer = infer_schedule, .reference = reference_schedule};
}
OpImpl impl_FlowStep() {
  return {.attrs = kFlowAttrs, .infer = infer_flow, .reference = reference_flow};
}

}  // namespace cyb
