// Tanh: shapes, f32 and f16, wide, denormal and special values.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return unary_cases({OpTag::kTanh, {}});
}

const CaseTable kTable(OpTag::kTanh, cases());

}  // namespace
}  // namespace cyb::test
