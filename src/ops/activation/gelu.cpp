// Gelu (tag 61): Hendrycks and Gimpel, arXiv 1606.08415. Evaluated in f64, rounded once.
#include "ops/activation/gelu.hpp"

#include <array>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"mode", AttrKind::kU8}};
constexpr double kSqrtHalf = 0x1.6A09E667F3BCDp-1;
constexpr double kSqrtTwoOverPi = 0x1.9884533D43651p-1;

float gelu(GeluMode mode, double x) {
  switch (mode) {
    case GeluMode::kErf:
      return static_cast<float>(x * 0.5 * (1.0 + math::erf_f64(x * kSqrtHalf)));
    case GeluMode::kTanh: {
      const double inner = kSqrtTwoOverPi * (x + 0.044715 * x * x * x);
      return static_cast<float>(x * 0.5 * (1.0 + math::tanh_f64(inner)));
    }
    default:
      return static_cast<float>(x * math::sigmoid_f64(1.702 * x));
  }
}

Result<std::vector<TensorSpec>> infer_gelu(const Attrs& attrs, rules::Specs in) {
  if (attrs.i(0) > static_cast<std::int64_t>(GeluMode::kQuick)) {
    return fail(rules::bad_payload("mode"));
  }
  return rules::same_float(attrs, in);
}

Result<void> reference_gelu(const RefCall& call) {
  const GeluMode mode = GeluAttrs::from(call.attrs).mode;
  return ref::map(call, [mode](float x) { return gelu(mode, x); });
}

}  // namespace

OpImpl impl_Gelu() {
  return {.attrs = kAttrs, .infer = infer_gelu, .reference = reference_gelu};
}

}  // namespace cyb
