// Mul: y = a · b with NumPy broadcasting; integers wrap.
#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

Result<void> reference_mul(const RefCall& call) {
  const auto f = [](auto a, auto b) { return a * b; };
  return elementwise::run(call, f, elementwise::Wrapping{f});
}

Result<std::vector<TensorSpec>> infer_mul(const Attrs& attrs, rules::Specs in) {
  CYB_ASSIGN(std::vector<TensorSpec> out, elementwise::infer_binary(attrs, in));
  elementwise::set_value(out[0], in, [](const Dim& a, const Dim& b) -> std::optional<Dim> {
    return rules::product(std::array{a, b});
  });
  return out;
}

}  // namespace

OpImpl impl_Mul() {
  return {.infer = infer_mul, .reference = reference_mul};
}

}  // namespace cyb
