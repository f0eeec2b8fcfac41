// Silu (tag 60): x / (1 + e^-x).
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

Result<void> reference_silu(const RefCall& call) {
  return ref::map_real(call, [](double v) { return v / (1.0 + math::exp_f64(-v)); });
}

}  // namespace

OpImpl impl_Silu() {
  return {.infer = rules::same_real, .reference = reference_silu};
}

}  // namespace cyb
