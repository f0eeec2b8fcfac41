// Sigmoid: shapes, f32 and f16, wide, denormal and special values.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return unary_cases({OpTag::kSigmoid, {}});
}

const CaseTable kTable(OpTag::kSigmoid, cases());

}  // namespace
}  // namespace cyb::test
