// Elementwise ops of one input on numbers of any dtype, bits and truth values: Neg, Abs, Sign, Not,
// BitwiseNot, IsNan, IsInf, Identity, BitCast.
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/math/is_nan.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// 0 - v modulo 2^n.
template <class C>
C negated(C v) {
  if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(std::uint64_t{0} - static_cast<std::uint64_t>(v));
  } else {
    return -v;
  }
}

template <class C>
C sign_of(C v) {
  if (is_nan(v)) return v;
  if (v > C{0}) return C{1};
  if constexpr (std::is_signed_v<C> || std::is_floating_point_v<C>) {
    if (v < C{0}) return static_cast<C>(-1);
  }
  return C{0};
}

Result<std::vector<TensorSpec>> infer_neg(const Attrs& attrs, Specs in) {
  const DType d = in[0].dtype;
  const bool is_unsigned =
      d == DType::kU8 || d == DType::kUint16 || d == DType::kUint32 || d == DType::kUint64;
  if (is_unsigned) return fail(rules::bad_dtype(0, d));
  return rules::same_number(attrs, in);
}

Result<void> reference_neg(const RefCall& call) {
  return ref::map_number(call, []<class C>(C v) { return negated(v); });
}

Result<void> reference_abs(const RefCall& call) {
  return ref::map_number(call, []<class C>(C v) {
    if constexpr (std::is_floating_point_v<C>)
      return std::fabs(v);
    else
      return v < C{0} ? negated(v) : v;
  });
}

Result<void> reference_sign(const RefCall& call) {
  return ref::map_number(call, []<class C>(C v) { return sign_of(v); });
}

Result<std::vector<TensorSpec>> infer_bool(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kBool));
  return rules::one(DType::kBool, in[0].dims);
}

Result<void> reference_not(const RefCall& call) {
  const auto n = static_cast<std::size_t>(call.inputs[0].shape.count());
  const auto* x = call.inputs[0].as<std::uint8_t>();
  for (std::size_t i = 0; i < n; ++i) call.outputs[0].as<std::uint8_t>()[i] = x[i] == 0 ? 1 : 0;
  return {};
}

Result<std::vector<TensorSpec>> infer_int(const Attrs&, Specs in) {
  CYB_TRY(rules::want_int(in, 0));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_bitwise_not(const RefCall& call) {
  return ref::visit_int(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]);
    for (std::size_t i = 0; i < x.size(); ++i) call.outputs[0].as<C>()[i] = static_cast<C>(~x[i]);
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_test(const Attrs&, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  return rules::one(DType::kBool, in[0].dims);
}

template <class F>
Result<void> test(const RefCall& call, F f) {
  const auto n = static_cast<std::size_t>(call.inputs[0].shape.count());
  for (std::size_t i = 0; i < n; ++i) {
    call.outputs[0].as<std::uint8_t>()[i] = f(ref::number_at(call.inputs[0], i)) ? 1 : 0;
  }
  return {};
}

Result<void> reference_is_nan(const RefCall& call) {
  return test(call, [](double v) { return v != v; });
}

constexpr std::array kIsInfAttrs = {AttrSpec{"positive", AttrKind::kU8},
                                    AttrSpec{"negative", AttrKind::kU8}};

Result<void> reference_is_inf(const RefCall& call) {
  const bool positive = call.attrs.i(0) != 0, negative = call.attrs.i(1) != 0;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return test(call, [=](double v) { return (positive && v == kInf) || (negative && v == -kInf); });
}

Result<std::vector<TensorSpec>> infer_identity(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  return std::vector{TensorSpec{in[0].dtype, in[0].dims, false, in[0].value}};
}

Result<void> reference_copy(const RefCall& call) {
  const auto bytes = tensor_bytes(call.inputs[0].dtype, call.inputs[0].shape).value_or(0);
  if (bytes != 0) std::memcpy(call.outputs[0].data, call.inputs[0].data, bytes);
  return {};
}

constexpr std::array kBitCastAttrs = {AttrSpec{"dtype", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_bit_cast(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const auto to = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  const bool fits =
      to && !is_block(*to) && ref::element_bytes(*to) == ref::element_bytes(in[0].dtype);
  if (!fits) return fail(rules::bad_payload("dtype"));
  return rules::one(*to, in[0].dims);
}

}  // namespace

OpImpl impl_Neg() {
  return {.infer = infer_neg, .reference = reference_neg};
}
OpImpl impl_Abs() {
  return {.infer = rules::same_number, .reference = reference_abs};
}
OpImpl impl_Sign() {
  return {.infer = rules::same_number, .reference = reference_sign};
}
OpImpl impl_Not() {
  return {.infer = infer_bool, .reference = reference_not};
}
OpImpl impl_BitwiseNot() {
  return {.infer = infer_int, .reference = reference_bitwise_not};
}
OpImpl impl_IsNan() {
  return {.infer = infer_test, .reference = reference_is_nan};
}
OpImpl impl_IsInf() {
  return {.attrs = kIsInfAttrs, .infer = infer_test, .reference = reference_is_inf};
}
OpImpl impl_Identity() {
  return {.infer = infer_identity, .reference = reference_copy};
}
OpImpl impl_BitCast() {
  return {.attrs = kBitCastAttrs, .infer = infer_bit_cast, .reference = reference_copy};
}

}  // namespace cyb
