// Div: y = a / b with NumPy broadcasting. Integers: truncation, division by zero is an error, and
// the one overflow (lowest / -1) wraps.
#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

template <class T>
bool has_zero(const TensorView& view) {
  const T* values = view.as<T>();
  for (std::int64_t i = 0; i < view.shape.count(); ++i) {
    if (values[i] == 0) return true;
  }
  return false;
}

Result<void> reference_div(const RefCall& call) {
  const TensorView& b = call.inputs[1];
  const bool empty = call.outputs[0].shape.count() == 0;
  if (!empty && ((b.dtype == DType::kI32 && has_zero<std::int32_t>(b)) ||
                 (b.dtype == DType::kI64 && has_zero<std::int64_t>(b)))) {
    return fail(invalid_input("Op::Div: integer division by zero"));
  }
  const auto f = [](float x, float y) { return x / y; };
  const auto g = []<class T>(T x, T y) {
    using U = std::make_unsigned_t<T>;
    return y == -1 ? static_cast<T>(U{0} - static_cast<U>(x)) : static_cast<T>(x / y);
  };
  return elementwise::run(call, f, g);
}

}  // namespace

OpImpl impl_Div() {
  return {.infer = elementwise::infer_binary, .reference = reference_div};
}

}  // namespace cyb
