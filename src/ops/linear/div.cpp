// Div: y = a / b with NumPy broadcasting. Integers: truncation, division by zero is an error, and
// the one overflow (lowest / -1) wraps.
#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

bool has_zero(const TensorView& view) {
  const auto n = static_cast<std::size_t>(view.shape.count());
  for (std::size_t i = 0; i < n; ++i) {
    if (ref::integer_at(view, i) == 0) return true;
  }
  return false;
}

Result<void> reference_div(const RefCall& call) {
  const TensorView& b = call.inputs[1];
  const bool empty = call.outputs[0].shape.count() == 0;
  if (!empty && rules::is_int(b.dtype) && has_zero(b)) {
    return fail(invalid_input("Op::Div: integer division by zero"));
  }
  const auto f = [](auto x, auto y) { return x / y; };
  const auto g = []<class T>(T x, T y) {
    if constexpr (std::is_signed_v<T>) {
      if (y == -1) return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
    }
    return static_cast<T>(x / y);
  };
  return elementwise::run(call, f, g);
}

std::optional<Dim> divided(const Dim& a, const Dim& b) {
  if (!b.is_constant() || b.constant() == 0) return std::nullopt;
  if (a.is_constant() && b.constant() != -1) return Dim(a.constant() / b.constant());
  return a.divided_by(b.constant());
}

Result<std::vector<TensorSpec>> infer_div(const Attrs& attrs, rules::Specs in) {
  CYB_ASSIGN(std::vector<TensorSpec> out, elementwise::infer_binary(attrs, in));
  elementwise::set_value(out[0], in, divided);
  return out;
}

}  // namespace

OpImpl impl_Div() {
  return {.infer = infer_div, .reference = reference_div};
}

}  // namespace cyb
