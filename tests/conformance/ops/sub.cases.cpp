// Sub: broadcasts, floats with edge values, wrapping integers.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return binary_cases({OpTag::kSub, {}});
}

const CaseTable kTable(OpTag::kSub, cases());

}  // namespace
}  // namespace cyb::test
