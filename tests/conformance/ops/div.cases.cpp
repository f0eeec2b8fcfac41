// Div: broadcasts, floats with edge values, truncating integers.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return binary_cases({OpTag::kDiv, {}}, true);
}

const CaseTable kTable(OpTag::kDiv, cases());

}  // namespace
}  // namespace cyb::test
