// Norms over channels of x [B, C, ...]: BatchNorm (tag 42, stored statistics), GroupNorm (43),
// InstanceNorm (44), MeanVarianceNorm (408), Lrn (406). Sums are in the reference order over the
// row-major elements; variance is the biased one; f64 only for f64 tensors.
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/reduce/axes.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kBatchAttrs = {AttrSpec{"eps", AttrKind::kF32},
                                    AttrSpec{"momentum", AttrKind::kF32}};
constexpr std::array kGroupAttrs = {AttrSpec{"num_groups", AttrKind::kU32},
                                    AttrSpec{"eps", AttrKind::kF32}};
constexpr std::array kEps = {AttrSpec{"eps", AttrKind::kF32}};

/// Parameters from input `first` on are [C], of the dtype of x or f32.
Result<void> check_channels(Specs in, std::size_t first, float eps) {
  if (!(eps >= 0.0F)) return fail(rules::bad_payload("eps"));
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  for (std::size_t k = first; k < in.size(); ++k) {
    if (in[k].absent) continue;
    CYB_TRY(rules::want_parameter(in, k));
    CYB_TRY(rules::want_dims(in, k, std::span(&in[0].dims[1], 1)));
  }
  return {};
}

Result<std::vector<TensorSpec>> infer_batch_norm(const Attrs& attrs, Specs in) {
  CYB_TRY(check_channels(in, 1, attrs.f(0)));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_batch_norm(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), g(call.inputs[1]), b(call.inputs[2]),
        mean(call.inputs[3]), variance(call.inputs[4]);
    ref::Outputs<C> y(call.outputs[0]);
    const ref::AxisView view(shape, 1);
    const C eps = call.attrs.f(0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i / view.inner % view.n;
      y[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + eps) * g[c] + b[c];
    }
    y.finish();
    return {};
  });
}

/// Mean and variance of n elements.
template <class C>
struct Moments {
  C mean, variance;
  Moments(const C* x, std::size_t n) {
    ref::Sum<C> sum, squares;
    for (std::size_t i = 0; i < n; ++i) sum.add(x[i]);
    mean = sum.value() / static_cast<C>(n);
    for (std::size_t i = 0; i < n; ++i) squares.add((x[i] - mean) * (x[i] - mean));
    variance = squares.value() / static_cast<C>(n);
  }
};

Result<void> group_norm(const RefCall& call, std::size_t groups, float eps) {
  const Shape& shape = call.inputs[0].shape;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), g(ref::input(call, 1)), b(ref::input(call, 2));
    ref::Outputs<C> y(call.outputs[0]);
    const ref::AxisView view(shape, 1);
    const std::size_t n = view.n / groups * view.inner;
    for (std::size_t at = 0; at < x.size(); at += n) {
      const Moments<C> m(x.data() + at, n);
      const C deviation = std::sqrt(m.variance + C{eps});
      for (std::size_t i = at; i < at + n; ++i) {
        const std::size_t c = i / view.inner % view.n;
        C v = (x[i] - m.mean) / deviation;
        if (g.present()) v = v * g[c];
        if (b.present()) v = v + b[c];
        y[i] = v;
      }
    }
    y.finish();
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_group_norm(const Attrs& attrs, Specs in) {
  CYB_TRY(check_channels(in, 1, attrs.f(1)));
  const Dim& c = in[0].dims[1];
  const bool fits =
      attrs.i(0) >= 1 && (!c.is_constant() || (c.constant() > 0 && c.constant() % attrs.i(0) == 0));
  if (!fits) return fail(rules::bad_payload("num_groups"));
  for (std::size_t d = 2; d < in[0].rank(); ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_group_norm(const RefCall& call) {
  return group_norm(call, static_cast<std::size_t>(call.attrs.i(0)), call.attrs.f(1));
}

Result<std::vector<TensorSpec>> infer_instance_norm(const Attrs& attrs, Specs in) {
  CYB_TRY(check_channels(in, 1, attrs.f(0)));
  for (std::size_t d = 2; d < in[0].rank(); ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_instance_norm(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  if (shape[1] == 0) return {};
  return group_norm(call, ref::extent(shape, 1), call.attrs.f(0));
}

constexpr std::array kAxes = {AttrSpec{"axes", AttrKind::kI32List}};

Result<std::vector<TensorSpec>> infer_mean_variance(const Attrs& attrs, Specs in) {
  for (const std::int64_t a : attrs.list(0)) {
    CYB_ASSIGN(const std::size_t axis, rules::axis(a, in[0].rank(), "axes"));
    CYB_TRY(rules::want_nonempty(in[0], axis));
  }
  return rules::same_real(attrs, in);
}

Result<void> reference_mean_variance(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const ref::Reduced at(shape, ref::axis_mask(call.attrs.list(0), shape.rank()));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    std::vector<C> part(at.reduced.size());
    for (const std::size_t base : at.kept) {
      for (std::size_t i = 0; i < part.size(); ++i) part[i] = x[base + at.reduced[i]];
      const Moments<C> m(part.data(), part.size());
      const C deviation = std::sqrt(m.variance) + C{1e-9F};
      for (std::size_t i = 0; i < part.size(); ++i)
        y[base + at.reduced[i]] = (part[i] - m.mean) / deviation;
    }
    y.finish();
    return {};
  });
}

constexpr std::array kLrnAttrs = {
    AttrSpec{"size", AttrKind::kU32}, AttrSpec{"alpha", AttrKind::kF32},
    AttrSpec{"beta", AttrKind::kF32}, AttrSpec{"bias", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_lrn(const Attrs& attrs, Specs in) {
  if (attrs.i(0) < 1) return fail(rules::bad_payload("size"));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  return rules::same_real(attrs, in);
}

/// x / (bias + alpha/size sum of squares of channels c - floor((size-1)/2) .. c +
/// ceil((size-1)/2))^beta.
Result<void> reference_lrn(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto size = static_cast<std::size_t>(call.attrs.i(0));
  const double alpha = call.attrs.f(1), beta = call.attrs.f(2), bias = call.attrs.f(3);
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    const ref::AxisView view(shape, 1);
    const std::size_t left = (size - 1) / 2, right = size - 1 - left;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t c = i / view.inner % view.n, base = i - c * view.inner;
      const std::size_t begin = c < left ? 0 : c - left, end = std::min(c + right + 1, view.n);
      ref::Sum<C> squares;
      for (std::size_t k = begin; k < end; ++k)
        squares.add(x[base + k * view.inner] * x[base + k * view.inner]);
      const double scale =
          bias + alpha / static_cast<double>(size) * static_cast<double>(squares.value());
      y[i] = static_cast<C>(static_cast<double>(x[i]) / math::power_f64(scale, beta));
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_BatchNorm() {
  return {.attrs = kBatchAttrs, .infer = infer_batch_norm, .reference = reference_batch_norm};
}
OpImpl impl_GroupNorm() {
  return {.attrs = kGroupAttrs, .infer = infer_group_norm, .reference = reference_group_norm};
}
OpImpl impl_InstanceNorm() {
  return {.attrs = kEps, .infer = infer_instance_norm, .reference = reference_instance_norm};
}
OpImpl impl_MeanVarianceNorm() {
  return {.attrs = kAxes, .infer = infer_mean_variance, .reference = reference_mean_variance};
}
OpImpl impl_Lrn() {
  return {.attrs = kLrnAttrs, .infer = infer_lrn, .reference = reference_lrn};
}

}  // namespace cyb
