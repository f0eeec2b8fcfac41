// CumSum (tag 274) and Cumulative (403): running sums and products along an axis, in order.
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

struct Walk {
  bool product, exclusive, reverse;
};

template <class C>
C step(C running, C v, bool product) {
  if (product) return ref::multiply(running, v);
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(static_cast<std::uint64_t>(running) + static_cast<std::uint64_t>(v));
  } else {
    return running + v;
  }
}

Result<void> run(const RefCall& call, std::size_t axis, Walk walk) {
  const TensorView& x = call.inputs[0];
  const ref::AxisView view(x.shape, axis);
  return ref::visit_number(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(x);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      C running = walk.product ? C{1} : C{0};
      for (std::size_t k = 0; k < view.n; ++k) {
        const std::size_t at = view.base(line) + (walk.reverse ? view.n - 1 - k : k) * view.inner;
        if (walk.exclusive) y[at] = running;
        running = step(running, in[at], walk.product);
        if (!walk.exclusive) y[at] = running;
      }
    }
    y.finish();
    return {};
  });
}

constexpr std::array kAttrs = {AttrSpec{"axis", AttrKind::kI32},
                               AttrSpec{"exclusive", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_cum_sum(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::axis(attrs.i(0), in[0].rank(), "axis"));
  return rules::same_number(attrs, in);
}

Result<void> reference_cum_sum(const RefCall& call) {
  const std::size_t axis = ref::axis_of(call.attrs.i(0), call.inputs[0].shape.rank());
  return run(call, axis, {false, call.attrs.i(1) != 0, false});
}

constexpr std::array kByAttrs = {AttrSpec{"kind", AttrKind::kU8},
                                 AttrSpec{"exclusive", AttrKind::kU8},
                                 AttrSpec{"reverse", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_cumulative(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 1, "kind"));
  CYB_TRY(rules::want_list(in, 1));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  if (const auto axis = rules::constants_of(in, 1)) {
    if (axis->size() != 1) return fail(rules::bad_shape(dims_text(in[1].dims), "one value"));
    CYB_TRY(rules::axis((*axis)[0], in[0].rank(), "axis"));
  }
  return rules::same_number(attrs, in);
}

Result<void> reference_cumulative(const RefCall& call) {
  const std::vector<std::int64_t> axis = ref::integers(call.inputs[1]);
  const std::size_t rank = call.inputs[0].shape.rank();
  if (axis.size() != 1) return fail(invalid_input("Op::Cumulative: one axis"));
  CYB_ASSIGN(const std::size_t a, rules::axis(axis[0], rank, "axis"));
  return run(call, a, {call.attrs.i(0) == 1, call.attrs.i(1) != 0, call.attrs.i(2) != 0});
}

}  // namespace

OpImpl impl_CumSum() {
  return {.attrs = kAttrs, .infer = infer_cum_sum, .reference = reference_cum_sum};
}
OpImpl impl_Cumulative() {
  return {.attrs = kByAttrs, .infer = infer_cumulative, .reference = reference_cumulative};
}

}  // namespace cyb
