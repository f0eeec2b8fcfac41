// Bits and truth values, with NumPy broadcasting: BitwiseAnd/Or/Xor, BitShift, And, Or, Xor.
#include <utility>

#include "ops/linear/elementwise.hpp"

namespace cyb {
namespace {

using rules::Specs;

Result<std::vector<TensorSpec>> infer_ints(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_int(in, 0));
  return elementwise::infer_binary(attrs, in);
}

Result<std::vector<TensorSpec>> infer_bools(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kBool));
  CYB_TRY(rules::want_dtype(in, 1, DType::kBool));
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(in[0], in[1]));
  return rules::one(DType::kBool, std::move(dims));
}

Result<void> reference_bitwise_and(const RefCall& call) {
  return elementwise::run_int(call, []<class T>(T a, T b) { return static_cast<T>(a & b); });
}
Result<void> reference_bitwise_or(const RefCall& call) {
  return elementwise::run_int(call, []<class T>(T a, T b) { return static_cast<T>(a | b); });
}
Result<void> reference_bitwise_xor(const RefCall& call) {
  return elementwise::run_int(call, []<class T>(T a, T b) { return static_cast<T>(a ^ b); });
}

constexpr std::array kShiftAttrs = {AttrSpec{"left", AttrKind::kU8}};

/// A count outside 0..width-1 shifts everything out: 0, or -1 for a negative number to the right.
template <class T>
T shifted(T a, T b, bool left) {
  constexpr std::uint64_t kWidth = sizeof(T) * 8;
  // NOLINTNEXTLINE(bugprone-signed-char-misuse): a negative count becomes a large one.
  const auto n = static_cast<std::uint64_t>(b);
  if (left) return n >= kWidth ? T{0} : static_cast<T>(static_cast<std::uint64_t>(a) << n);
  if (n >= kWidth) return std::cmp_less(a, 0) ? static_cast<T>(-1) : T{0};
  return static_cast<T>(a >> n);
}

Result<void> reference_shift(const RefCall& call) {
  const bool left = call.attrs.i(0) != 0;
  return elementwise::run_int(call, [left]<class T>(T a, T b) { return shifted(a, b, left); });
}

template <class F>
Result<void> run_bool(const RefCall& call, F f) {
  const auto g = [f](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(f(a != 0, b != 0) ? 1 : 0);
  };
  elementwise::apply(call, call.inputs[0].as<std::uint8_t>(), call.inputs[1].as<std::uint8_t>(),
                     call.outputs[0].as<std::uint8_t>(), g);
  return {};
}

Result<void> reference_and(const RefCall& call) {
  return run_bool(call, [](bool a, bool b) { return a && b; });
}
Result<void> reference_or(const RefCall& call) {
  return run_bool(call, [](bool a, bool b) { return a || b; });
}
Result<void> reference_xor(const RefCall& call) {
  return run_bool(call, [](bool a, bool b) { return a != b; });
}

}  // namespace

OpImpl impl_BitwiseAnd() {
  return {.infer = infer_ints, .reference = reference_bitwise_and};
}
OpImpl impl_BitwiseOr() {
  return {.infer = infer_ints, .reference = reference_bitwise_or};
}
OpImpl impl_BitwiseXor() {
  return {.infer = infer_ints, .reference = reference_bitwise_xor};
}
OpImpl impl_BitShift() {
  return {.attrs = kShiftAttrs, .infer = infer_ints, .reference = reference_shift};
}
OpImpl impl_And() {
  return {.infer = infer_bools, .reference = reference_and};
}
OpImpl impl_Or() {
  return {.infer = infer_bools, .reference = reference_or};
}
OpImpl impl_Xor() {
  return {.infer = infer_bools, .reference = reference_xor};
}

}  // namespace cyb
