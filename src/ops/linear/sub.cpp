// Sub: y = a - b with NumPy broadcasting; integers wrap.
#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

Result<void> reference_sub(const RefCall& call) {
  const auto f = [](auto a, auto b) { return a - b; };
  return elementwise::run(call, f, elementwise::Wrapping{f});
}

}  // namespace

OpImpl impl_Sub() {
  return {.infer = elementwise::infer_binary, .reference = reference_sub};
}

}  // namespace cyb
