// Case tables: op x dtype x shape x edge case. Each ops/<op>.cases.cpp registers one table; the
// harness runs it on the reference (digests), and on every backend and ISA against the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/op.hpp"

namespace cyb::test {

/// Where the values of an input come from. All are functions of (case, input, index) alone.
enum class Fill : std::uint8_t {
  kNormal,    // about normal, |x| < 4
  kPositive,  // 0.5 .. 1.5
  kWide,      // magnitudes 1e-12 .. 1e12
  kTiny,      // denormals and the smallest normals, both signs, and -0
  kSpecial,   // normal with NaN, +-Inf and -0 sprinkled in
  kInfinite,  // normal with -Inf and -0 sprinkled in
  kIndex,     // i32 or i64 0 .. limit-1
  kSmall,     // integers -3 .. 3 (unsigned: 0 .. 6 or their two's complement)
};

/// How a backend gets the input.
enum class Role : std::uint8_t { kActivation, kVector, kMatmul, kGather, kAbsent };

struct In {
  Shape shape{};
  Role role = Role::kActivation;
  DType dtype = DType::kF32;
  Fill fill = Fill::kNormal;
  std::int32_t limit = 0;          // kIndex
  std::vector<double> exact = {};  // these values in turn, in place of the fill
};

struct Case {
  std::string name;
  Op op;
  std::vector<In> inputs;
};

using CaseList = std::vector<Case>;

/// Registers the table of one op.
class CaseTable {
 public:
  CaseTable(OpTag tag, CaseList cases);
};

/// All tables, by tag.
struct OpCases {
  OpTag tag;
  CaseList cases;
};
const std::vector<OpCases>& all_cases();

// Pieces that many tables share.
inline const std::vector<Shape> kEdgeShapes = {{0, 4},    {1, 1},  {3, 7},
                                               {2, 3, 5}, {4, 64}, {1, 1000}};
inline const std::vector<Fill> kEdgeFills = {Fill::kNormal, Fill::kWide, Fill::kTiny,
                                             Fill::kSpecial};
inline const std::vector<DType> kWeightTypes = {
    DType::kF32,  DType::kF16, DType::kBf16, DType::kQ8,  DType::kQ4,  DType::kQ4_1, DType::kQ5_0,
    DType::kQ5_1, DType::kQ2k, DType::kQ3k,  DType::kQ4k, DType::kQ5k, DType::kQ6k};

std::string fill_name(Fill fill);
/// "4x64".
std::string shape_name(const Shape& shape);
/// One case per edge shape, fill and f32/f16 for an op of one input.
CaseList unary_cases(const Op& op);
/// Broadcasts, fills and dtypes of a binary op.
CaseList binary_cases(const Op& op, bool integers_divide = false);

inline In activation(const Shape& shape, Fill fill = Fill::kNormal, DType dtype = DType::kF32) {
  return {shape, Role::kActivation, dtype, fill, 0};
}
inline In gain(std::int64_t n) {
  return {Shape{n}, Role::kVector, DType::kF32, Fill::kPositive, 0};
}
inline In vector_of(std::int64_t n) {
  return {Shape{n}, Role::kVector, DType::kF32, Fill::kNormal, 0};
}
inline In matrix(std::int64_t rows, std::int64_t columns, DType dtype = DType::kF32) {
  return {Shape{rows, columns}, Role::kMatmul, dtype, Fill::kNormal, 0};
}
inline In indices(const Shape& shape, std::int32_t limit) {
  return {shape, Role::kActivation, DType::kI32, Fill::kIndex, limit};
}
/// A tensor of these values: parameters.
inline In given(std::vector<double> values, DType dtype = DType::kI64) {
  const auto n = static_cast<std::int64_t>(values.size());
  return {Shape{n}, Role::kActivation, dtype, Fill::kNormal, 0, std::move(values)};
}
inline In given(const Shape& shape, std::vector<double> values, DType dtype) {
  return {shape, Role::kActivation, dtype, Fill::kNormal, 0, std::move(values)};
}
inline In scalar(double value, DType dtype = DType::kF32) {
  return {Shape{}, Role::kActivation, dtype, Fill::kNormal, 0, {value}};
}
/// An op with attributes by name; a mistake in a table throws.
inline Op op_of(OpTag tag, std::initializer_list<NamedAttr> attrs = {}) {
  return make_op(tag, attrs).value();
}
using Ints = std::vector<std::int64_t>;
inline const std::vector<DType> kNumberTypes = {
    DType::kF32,    DType::kF16, DType::kF64,    DType::kI8,  DType::kU8,    DType::kI16,
    DType::kUint16, DType::kI32, DType::kUint32, DType::kI64, DType::kUint64};
inline const std::vector<DType> kIntTypes = {DType::kI8,     DType::kU8,    DType::kI16,
                                             DType::kUint16, DType::kI32,   DType::kUint32,
                                             DType::kI64,    DType::kUint64};
inline const std::vector<DType> kRealTypes = {DType::kF32, DType::kF16, DType::kF64};
/// One case per edge shape, fill and real dtype.
CaseList real_cases(const Op& op);
/// Small shapes of every given dtype.
CaseList dtype_cases(const Op& op, const std::vector<DType>& dtypes, Fill fill = Fill::kNormal);

inline In absent() {
  return {Shape{}, Role::kAbsent, DType::kF32, Fill::kNormal, 0};
}

}  // namespace cyb::test
