// Norms over trailing dimensions or one axis: AdaLN (tag 45), LayerNormFull (404), RmsNormFrom
// (405), LpNorm (407). Formulas and order as LayerNorm and RmsNorm.
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

template <class C>
struct Centred {
  C mean, deviation;
  std::vector<C> values;
  Centred(const C* x, std::size_t n, C eps) : values(n) {
    ref::Sum<C> sum, squares;
    for (std::size_t i = 0; i < n; ++i) sum.add(x[i]);
    mean = sum.value() / static_cast<C>(n);
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = x[i] - mean;
      squares.add(values[i] * values[i]);
    }
    deviation = std::sqrt(squares.value() / static_cast<C>(n) + eps);
  }
};

constexpr std::array kEps = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_ada(const Attrs& attrs, Specs in) {
  if (!(attrs.f(0) >= 0.0F)) return fail(rules::bad_payload("eps"));
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_nonempty(in[0], in[0].rank() - 1));
  for (std::size_t k = 1; k < 3; ++k) {
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_ASSIGN(const std::vector<Dim> dims, rules::broadcast(in[0], in[k]));
    CYB_TRY(rules::want_dims(in, 0, dims));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_ada(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto d = static_cast<std::size_t>(shape.back());
  const auto scales = ref::broadcast_strides(shape, call.inputs[1].shape),
             shifts = ref::broadcast_strides(shape, call.inputs[2].shape);
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), scale(call.inputs[1]), shift(call.inputs[2]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t at = 0; at < x.size(); at += d) {
      const Centred<C> row(x.data() + at, d, call.attrs.f(0));
      for (std::size_t i = 0; i < d; ++i) y[at + i] = row.values[i] / row.deviation;
    }
    ref::for_each_index(shape, [&](std::size_t i, const ref::Index& index) {
      const C s = scale[ref::dot(index, scales, shape.rank())],
              t = shift[ref::dot(index, shifts, shape.rank())];
      y[i] = y[i] * (C{1} + s) + t;
    });
    y.finish();
    return {};
  });
}

constexpr std::array kFromAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                   AttrSpec{"eps", AttrKind::kF32}};

/// Checks axis, eps and that inputs from 1 on broadcast to x; gives the axis.
Result<std::size_t> check_from(const Attrs& attrs, Specs in) {
  if (!(attrs.f(1) >= 0.0F)) return fail(rules::bad_payload("eps"));
  CYB_TRY(rules::want_real(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  for (std::size_t d = axis; d < in[0].rank(); ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (in[k].absent) continue;
    CYB_TRY(rules::want_real(in, k));
    if (in[0].dtype != DType::kF64 && in[k].dtype == DType::kF64) {
      return fail(rules::bad_dtype(k, in[k].dtype));
    }
    CYB_ASSIGN(const std::vector<Dim> dims, rules::broadcast(in[0], in[k]));
    CYB_TRY(rules::want_dims(in, 0, dims));
  }
  return axis;
}

Result<std::vector<TensorSpec>> infer_layer_full(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const std::size_t axis, check_from(attrs, in));
  TensorSpec statistic{in[0].dtype == DType::kF64 ? DType::kF64 : DType::kF32, in[0].dims};
  for (std::size_t d = axis; d < in[0].rank(); ++d) statistic.dims[d] = 1;
  return std::vector{TensorSpec{in[0].dtype, in[0].dims}, statistic, statistic};
}

/// y = y · g + b with broadcasting.
template <class C>
void scale_and_shift(const RefCall& call, ref::Outputs<C>& y) {
  const Shape& shape = call.outputs[0].shape;
  const TensorView gv = ref::input(call, 1), bv = ref::input(call, 2);
  const ref::Elements<C> g(gv), b(bv);
  const auto gs = g.present() ? ref::broadcast_strides(shape, gv.shape) : ref::Strides{};
  const auto bs = b.present() ? ref::broadcast_strides(shape, bv.shape) : ref::Strides{};
  ref::for_each_index(shape, [&](std::size_t i, const ref::Index& index) {
    if (g.present()) y[i] = y[i] * g[ref::dot(index, gs, shape.rank())];
    if (b.present()) y[i] = y[i] + b[ref::dot(index, bs, shape.rank())];
  });
}

Result<void> reference_layer_full(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t axis = ref::axis_of(call.attrs.i(0), shape.rank()),
                    d = ref::extent(shape, axis, shape.rank());
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]), mean(call.outputs[1]), inverse(call.outputs[2]);
    for (std::size_t r = 0; r * d < x.size(); ++r) {
      const Centred<C> row(x.data() + r * d, d, call.attrs.f(1));
      for (std::size_t i = 0; i < d; ++i) y[r * d + i] = row.values[i] / row.deviation;
      mean[r] = row.mean;
      inverse[r] = C{1} / row.deviation;
    }
    scale_and_shift(call, y);
    y.finish();
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_rms_from(const Attrs& attrs, Specs in) {
  CYB_TRY(check_from(attrs, in));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_rms_from(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t axis = ref::axis_of(call.attrs.i(0), shape.rank()),
                    d = ref::extent(shape, axis, shape.rank());
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t at = 0; at < x.size(); at += d) {
      ref::Sum<C> squares;
      for (std::size_t i = 0; i < d; ++i) squares.add(x[at + i] * x[at + i]);
      const C r = std::sqrt(squares.value() / static_cast<C>(d) + C{call.attrs.f(1)});
      for (std::size_t i = 0; i < d; ++i) y[at + i] = x[at + i] / r;
    }
    scale_and_shift(call, y);
    y.finish();
    return {};
  });
}

constexpr std::array kLpAttrs = {AttrSpec{"axis", AttrKind::kI32}, AttrSpec{"p", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_lp(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::axis(attrs.i(0), in[0].rank(), "axis"));
  if (attrs.i(1) != 1 && attrs.i(1) != 2) return fail(rules::bad_payload("p"));
  return rules::same_real(attrs, in);
}

/// x over the 1- or 2-norm of its line; a line of zeros stays 0.
Result<void> reference_lp(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const ref::AxisView view(shape, ref::axis_of(call.attrs.i(0), shape.rank()));
  const bool squares = call.attrs.i(1) == 2;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      ref::Sum<C> sum;
      const std::size_t base = view.base(line);
      for (std::size_t k = 0; k < view.n; ++k) {
        const C v = x[base + k * view.inner];
        sum.add(squares ? v * v : std::fabs(v));
      }
      const C norm = squares ? std::sqrt(sum.value()) : sum.value();
      for (std::size_t k = 0; k < view.n; ++k) {
        const std::size_t at = base + k * view.inner;
        y[at] = norm == C{0} ? C{0} : x[at] / norm;
      }
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_AdaLN() {
  return {.attrs = kEps, .infer = infer_ada, .reference = reference_ada};
}
OpImpl impl_LayerNormFull() {
  return {.attrs = kFromAttrs, .infer = infer_layer_full, .reference = reference_layer_full};
}
OpImpl impl_RmsNormFrom() {
  return {.attrs = kFromAttrs, .infer = infer_rms_from, .reference = reference_rms_from};
}
OpImpl impl_LpNorm() {
  return {.attrs = kLpAttrs, .infer = infer_lp, .reference = reference_lp};
}

}  // namespace cyb
