// Add: y = a + b with NumPy broadcasting; integers wrap.
#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

Result<void> reference_add(const RefCall& call) {
  const auto f = [](auto a, auto b) { return a + b; };
  return elementwise::run(call, f, elementwise::Wrapping{f});
}

}  // namespace

OpImpl impl_Add() {
  return {.infer = elementwise::infer_binary, .reference = reference_add};
}

}  // namespace cyb
