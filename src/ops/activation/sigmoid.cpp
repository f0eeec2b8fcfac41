// Sigmoid (tag 68): 1 / (1 + e^-x), without overflow.
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

Result<void> reference_sigmoid(const RefCall& call) {
  return ref::map_real(call, [](double v) { return math::sigmoid_f64(v); });
}

}  // namespace

OpImpl impl_Sigmoid() {
  return {.infer = rules::same_real, .reference = reference_sigmoid};
}

}  // namespace cyb
