// Relu (tag 65): max(x, 0); NaN stays NaN, -0 becomes +0.
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

Result<void> reference_relu(const RefCall& call) {
  return ref::map(call, [](float x) { return x <= 0.0F ? 0.0F : x; });
}

}  // namespace

OpImpl impl_Relu() {
  return {.infer = rules::same_float, .reference = reference_relu};
}

}  // namespace cyb
