// Gelu (tag 61): Hendrycks and Gimpel, arXiv 1606.08415. Evaluated in f64, rounded once.
#include "ops/activation/gelu.hpp"

#include <array>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"mode", AttrKind::kU8}};

double gelu(GeluMode mode, double x) {
  switch (mode) {
    case GeluMode::kErf:
      return math::gelu_f64(x);
    case GeluMode::kTanh:
      return math::gelu_tanh_f64(x);
    default:
      return math::swish_f64(x, 1.702);
  }
}

Result<std::vector<TensorSpec>> infer_gelu(const Attrs& attrs, rules::Specs in) {
  if (attrs.i(0) > static_cast<std::int64_t>(GeluMode::kQuick)) {
    return fail(rules::bad_payload("mode"));
  }
  return rules::same_real(attrs, in);
}

Result<void> reference_gelu(const RefCall& call) {
  const GeluMode mode = GeluAttrs::from(call.attrs).mode;
  return ref::map_real(call, [mode](double x) { return gelu(mode, x); });
}

}  // namespace

OpImpl impl_Gelu() {
  return {.attrs = kAttrs, .infer = infer_gelu, .reference = reference_gelu};
}

}  // namespace cyb
