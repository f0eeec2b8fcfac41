// Mul: broadcasts, floats with edge values, wrapping integers.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return binary_cases({OpTag::kMul, {}});
}

const CaseTable kTable(OpTag::kMul, cases());

}  // namespace
}  // namespace cyb::test
