// LogSoftmax (tag 349): x - max - ln(sum e^(x - max)). Hardmax (350): 1 at the first maximum.
#include <limits>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kAttrs = {AttrSpec{"dim", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_rows(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "dim"));
  CYB_TRY(rules::want_nonempty(in[0], axis));
  return rules::same_real(attrs, in);
}

Result<void> reference_log_softmax(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const ref::AxisView view(shape, ref::axis_of(call.attrs.i(0), shape.rank()));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      const std::size_t base = view.base(line);
      C largest = -std::numeric_limits<C>::infinity();
      for (std::size_t k = 0; k < view.n; ++k) {
        if (x[base + k * view.inner] > largest) largest = x[base + k * view.inner];
      }
      ref::Sum<double> sum;
      for (std::size_t k = 0; k < view.n; ++k) {
        sum.add(math::exp_f64(static_cast<double>(x[base + k * view.inner] - largest)));
      }
      const double log = math::log_f64(sum.value());
      for (std::size_t k = 0; k < view.n; ++k) {
        const std::size_t at = base + k * view.inner;
        y[at] = static_cast<C>(static_cast<double>(x[at] - largest) - log);
      }
    }
    y.finish();
    return {};
  });
}

Result<void> reference_hardmax(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const ref::AxisView view(shape, ref::axis_of(call.attrs.i(0), shape.rank()));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t line = 0; line < view.lines(); ++line) {
      const std::size_t base = view.base(line);
      std::size_t best = 0;
      for (std::size_t k = 1; k < view.n; ++k) {
        if (x[base + k * view.inner] > x[base + best * view.inner]) best = k;
      }
      for (std::size_t k = 0; k < view.n; ++k) y[base + k * view.inner] = k == best ? C{1} : C{0};
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_LogSoftmax() {
  return {.attrs = kAttrs, .infer = infer_rows, .reference = reference_log_softmax};
}
OpImpl impl_Hardmax() {
  return {.attrs = kAttrs, .infer = infer_rows, .reference = reference_hardmax};
}

}  // namespace cyb
