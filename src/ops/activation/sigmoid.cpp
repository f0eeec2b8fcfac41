// Sigmoid (tag 68): 1 / (1 + e^-x), without overflow.
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

Result<void> reference_sigmoid(const RefCall& call) {
  return ref::map(call, [](float x) {
    const double v = x;
    return static_cast<float>(math::sigmoid_f64(v));
  });
}

}  // namespace

OpImpl impl_Sigmoid() {
  return {.infer = rules::same_float, .reference = reference_sigmoid};
}

}  // namespace cyb
