// Add: broadcasts, floats with edge values, wrapping integers.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  return binary_cases({OpTag::kAdd, {}});
}

const CaseTable kTable(OpTag::kAdd, cases());

}  // namespace
}  // namespace cyb::test
