// Tanh (tag 69).
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

Result<void> reference_tanh(const RefCall& call) {
  return ref::map_real(call, [](double v) { return math::tanh_f64(v); });
}

}  // namespace

OpImpl impl_Tanh() {
  return {.infer = rules::same_real, .reference = reference_tanh};
}

}  // namespace cyb
