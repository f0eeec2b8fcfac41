// Relu (tag 65): max(x, 0); NaN stays NaN, -0 becomes +0.
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

Result<void> reference_relu(const RefCall& call) {
  return ref::map_real(call, [](double x) { return x <= 0.0 ? 0.0 : x; });
}

}  // namespace

OpImpl impl_Relu() {
  return {.infer = rules::same_real, .reference = reference_relu};
}

}  // namespace cyb
