// Cast (tag 285) among f32 f16 bf16 f64 bool and the integers. Integers go through two's complement
// with saturation; to bool: not zero. Int to float rounds to nearest even.
#include "ops/layout/cast.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/half.hpp"
#include "ops/layout/convert.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"dtype", AttrKind::kU8}};

struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

/// Calls f with a null pointer of the element type; false for a dtype that Cast does not know.
template <class F>
bool visit(DType dtype, F f) {
  switch (dtype) {
    case DType::kF32:
      f(static_cast<float*>(nullptr));
      return true;
    case DType::kF64:
      f(static_cast<double*>(nullptr));
      return true;
    case DType::kF16:
      f(static_cast<F16*>(nullptr));
      return true;
    case DType::kBf16:
      f(static_cast<Bf16*>(nullptr));
      return true;
    case DType::kBool:
      f(static_cast<bool*>(nullptr));
      return true;
    case DType::kI8:
      f(static_cast<std::int8_t*>(nullptr));
      return true;
    case DType::kU8:
      f(static_cast<std::uint8_t*>(nullptr));
      return true;
    case DType::kI16:
      f(static_cast<std::int16_t*>(nullptr));
      return true;
    case DType::kUint16:
      f(static_cast<std::uint16_t*>(nullptr));
      return true;
    case DType::kI32:
      f(static_cast<std::int32_t*>(nullptr));
      return true;
    case DType::kUint32:
      f(static_cast<std::uint32_t*>(nullptr));
      return true;
    case DType::kI64:
      f(static_cast<std::int64_t*>(nullptr));
      return true;
    case DType::kUint64:
      f(static_cast<std::uint64_t*>(nullptr));
      return true;
    default:
      return false;
  }
}

float widen(F16 v) {
  return f16_to_f32(v.bits);
}
float widen(Bf16 v) {
  return bf16_to_f32(v.bits);
}
template <class T>
T widen(T v) {
  return v;
}

/// To f32, odd if inexact: a later rounding to 16 bits is then the only one that counts.
float to_odd(double v) {
  const auto nearest = static_cast<float>(v);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (static_cast<double>(nearest) == v || v != v || (bits & 1u) != 0) return nearest;
  if ((bits & 0x7FFFFFFFu) == 0x7F800000u) return nearest;
  const bool too_far = std::fabs(static_cast<double>(nearest)) > std::fabs(v);
  return std::bit_cast<float>(too_far ? bits - 1 : bits + 1);
}

template <class From>
float to_single(From v) {
  if constexpr (std::is_same_v<From, float>) return v;
  if constexpr (std::is_same_v<From, double>) return to_odd(v);
  return static_cast<float>(v);  // an integer with more than 24 bits is beyond the range of f16
}

template <class To, class From>
To convert(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From{0};
  } else if constexpr (std::is_same_v<To, F16>) {
    return {f32_to_f16(to_single(v))};
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return {f32_to_bf16(to_single(static_cast<double>(v)))};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(v);
  } else if constexpr (std::is_same_v<From, bool>) {
    return static_cast<To>(v ? 1 : 0);
  } else {
    return convert::to_integer<To>(v);
  }
}

Result<std::vector<TensorSpec>> infer_cast(const Attrs& attrs, rules::Specs in) {
  const auto to = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  const auto known = [](DType dtype) { return visit(dtype, [](auto) {}); };
  if (!to || !known(*to)) return fail(rules::bad_payload("dtype"));
  if (!known(in[0].dtype)) return fail(rules::bad_dtype(0, in[0].dtype));
  const bool exact = in[0].value && (*to == DType::kI32 || *to == DType::kI64);
  return std::vector{TensorSpec{*to, in[0].dims, false, exact ? in[0].value : std::nullopt}};
}

Result<void> reference_cast(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const MutableTensorView& y = call.outputs[0];
  const auto n = static_cast<std::size_t>(x.shape.count());
  visit(x.dtype, [&]<class From>(From*) {
    visit(y.dtype, [&]<class To>(To*) {
      for (std::size_t i = 0; i < n; ++i) {
        From value;
        std::memcpy(&value, x.data + i * sizeof(From), sizeof(From));
        const To converted = convert<To>(widen(value));
        std::memcpy(y.data + i * sizeof(To), &converted, sizeof(To));
      }
    });
  });
  return {};
}

}  // namespace

OpImpl impl_Cast() {
  return {.attrs = kAttrs, .infer = infer_cast, .reference = reference_cast};
}

}  // namespace cyb
