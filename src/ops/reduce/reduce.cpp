// ReduceSum, ReduceMean, ReduceMax, ReduceMin (tags 270-273) over attribute axes, and Reduce (400)
// of ten kinds with axes by tensor. Sums are in the reference order over the row-major elements.
#include <cmath>
#include <limits>

#include "ops/layout/convert.hpp"
#include "ops/math/elementary.hpp"
#include "ops/math/is_nan.hpp"
#include "ops/op_impl.hpp"
#include "ops/reduce/axes.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Kind : std::int64_t {
  kSum,
  kMean,
  kMax,
  kMin,
  kProd,
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kSumSquare
};

Result<std::vector<Dim>> reduced_dims(const TensorSpec& x, std::span<const std::int64_t> axes,
                                      bool keep, bool empty_is_error) {
  for (const std::int64_t a : axes) CYB_TRY(rules::axis(a, x.rank(), "axes"));
  const ref::AxisMask mask = ref::axis_mask(axes, x.rank());
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (mask[d] && empty_is_error) CYB_TRY(rules::want_nonempty(x, d));
    if (!mask[d]) dims.push_back(x.dims[d]);
    if (mask[d] && keep) dims.emplace_back(1);
  }
  return dims;
}

template <class C>
double log_sum_exp(const C* x, std::span<const std::size_t> offsets) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::size_t o : offsets) {
    const auto v = static_cast<double>(x[o]);
    if (v > largest || v != v) largest = v;
  }
  if (!(std::fabs(largest) < std::numeric_limits<double>::infinity())) return largest;
  ref::Sum<double> sum;
  for (const std::size_t o : offsets) sum.add(math::exp_f64(static_cast<double>(x[o]) - largest));
  return largest + math::log_f64(sum.value());
}

/// The neutral element of max and min.
template <class C>
C lowest(bool for_max) {
  using Limits = std::numeric_limits<C>;
  if constexpr (std::is_floating_point_v<C>)
    return for_max ? -Limits::infinity() : Limits::infinity();
  return for_max ? Limits::lowest() : Limits::max();
}

template <class C>
C extreme(const C* x, std::span<const std::size_t> offsets, bool largest) {
  C best = lowest<C>(largest);
  for (const std::size_t o : offsets) {
    if (is_nan(x[o])) return x[o];
    if (largest ? x[o] > best : x[o] < best) best = x[o];
  }
  return best;
}

template <class C, class F>
C sum_of(const C* x, std::span<const std::size_t> offsets, F f) {
  ref::Sum<C> sum;
  for (const std::size_t o : offsets) sum.add(f(x[o]));
  return sum.value();
}

template <class C>
C mean_of(C sum, std::size_t n) {
  if constexpr (std::is_integral_v<C>) {
    return n == 0 ? C{0} : static_cast<C>(sum / static_cast<C>(n));
  } else {
    return sum / static_cast<C>(n);
  }
}

template <class C>
C magnitude(C v) {
  return v < C{0} ? static_cast<C>(C{0} - v) : v;
}

template <class C>
C reduce_one(const C* x, std::span<const std::size_t> offsets, std::int64_t kind) {
  const auto same = [](C v) { return v; };
  const auto square = [](C v) { return ref::multiply(v, v); };
  switch (kind) {
    case kSum:
      return sum_of(x, offsets, same);
    case kMean:
      return mean_of(sum_of(x, offsets, same), offsets.size());
    case kMax:
    case kMin:
      return extreme(x, offsets, kind == kMax);
    case kProd: {
      C product{1};
      for (const std::size_t o : offsets) product = ref::multiply(product, x[o]);
      return product;
    }
    case kL1:
      return sum_of(x, offsets, magnitude<C>);
    case kL2:
      return convert::to<C>(std::sqrt(static_cast<double>(sum_of(x, offsets, square))));
    case kLogSum:
      return convert::to<C>(math::log_f64(static_cast<double>(sum_of(x, offsets, same))));
    case kLogSumExp:
      return convert::to<C>(log_sum_exp(x, offsets));
    default:
      return sum_of(x, offsets, square);
  }
}

Result<void> run_reduce(const RefCall& call, std::span<const std::int64_t> axes,
                        std::int64_t kind) {
  const TensorView& x = call.inputs[0];
  const ref::Reduced at(x.shape, ref::axis_mask(axes, x.shape.rank()));
  const DType dtype = x.dtype == DType::kBool ? DType::kU8 : x.dtype;
  return ref::visit_number(dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(x);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < at.kept.size(); ++i)
      y[i] = reduce_one(in.data() + at.kept[i], at.reduced, kind);
    y.finish();
    return {};
  });
}

constexpr std::array kAttrs = {AttrSpec{"axes", AttrKind::kI32List},
                               AttrSpec{"keep", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_by_attrs(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_ASSIGN(std::vector<Dim> dims, reduced_dims(in[0], attrs.list(0), attrs.i(1) != 0, true));
  return rules::one(in[0].dtype, std::move(dims));
}

template <Kind K>
Result<void> reference_by_attrs(const RefCall& call) {
  return run_reduce(call, call.attrs.list(0), K);
}

constexpr std::array kByAttrs = {AttrSpec{"kind", AttrKind::kU8}, AttrSpec{"keep", AttrKind::kU8},
                                 AttrSpec{"noop", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_reduce(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, kSumSquare, "kind"));
  const bool order = attrs.i(0) == kMax || attrs.i(0) == kMin;
  if (!(order && in[0].dtype == DType::kBool)) CYB_TRY(rules::want_number(in, 0));
  const bool keep = attrs.i(1) != 0, noop = attrs.i(2) != 0;
  const bool given = !rules::at(in, 1).absent;
  if (given) CYB_TRY(rules::want_list(in, 1));
  const auto n = given ? rules::length_of(in, 1) : std::optional<std::int64_t>(0);
  if (n == 0 && noop) return rules::one(in[0].dtype, in[0].dims);
  const auto axes =
      n == 0 ? std::optional(std::vector<std::int64_t>{}) : rules::constants_of(in, 1);
  if (!axes) {
    const bool fits = keep || (n && *n <= static_cast<std::int64_t>(in[0].rank()));
    if (!fits) return fail(rules::bad_shape(dims_text(in[1].dims), "a known number of axes"));
    const std::size_t rank = in[0].rank() - (keep ? 0 : static_cast<std::size_t>(*n));
    return rules::one(in[0].dtype, std::vector<Dim>(rank, Dim::anonymous()));
  }
  CYB_ASSIGN(std::vector<Dim> dims, reduced_dims(in[0], *axes, keep, false));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_reduce(const RefCall& call) {
  const std::vector<std::int64_t> axes = ref::integers(ref::input(call, 1));
  if (!axes.empty() || call.attrs.i(2) == 0) return run_reduce(call, axes, call.attrs.i(0));
  const TensorView& x = call.inputs[0];  // no axes: each element by itself
  const DType dtype = x.dtype == DType::kBool ? DType::kU8 : x.dtype;
  return ref::visit_number(dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(x);
    ref::Outputs<C> y(call.outputs[0]);
    const std::array<std::size_t, 1> self = {0};
    for (std::size_t i = 0; i < in.size(); ++i)
      y[i] = reduce_one(in.data() + i, self, call.attrs.i(0));
    y.finish();
    return {};
  });
}

template <Kind K>
OpImpl by_attrs() {
  return {.attrs = kAttrs, .infer = infer_by_attrs, .reference = reference_by_attrs<K>};
}

}  // namespace

OpImpl impl_ReduceSum() {
  return by_attrs<kSum>();
}
OpImpl impl_ReduceMean() {
  return by_attrs<kMean>();
}
OpImpl impl_ReduceMax() {
  return by_attrs<kMax>();
}
OpImpl impl_ReduceMin() {
  return by_attrs<kMin>();
}
OpImpl impl_Reduce() {
  return {.attrs = kByAttrs, .infer = infer_reduce, .reference = reference_reduce};
}

}  // namespace cyb
