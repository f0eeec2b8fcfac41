// Tanh (tag 69).
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

Result<void> reference_tanh(const RefCall& call) {
  return ref::map(call, [](float x) {
    const double v = x;
    return static_cast<float>(math::tanh_f64(v));
  });
}

}  // namespace

OpImpl impl_Tanh() {
  return {.infer = rules::same_float, .reference = reference_tanh};
}

}  // namespace cyb
