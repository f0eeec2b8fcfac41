// Relu: shapes, f32 and f16, wide, denormal and special values.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return unary_cases({OpTag::kRelu, {}});
}

const CaseTable kTable(OpTag::kRelu, cases());

}  // namespace
}  // namespace cyb::test
