// Dequantize: every weight format.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    all.push_back(
        {std::string(dtype_name(dtype)), {OpTag::kDequantize, {}}, {matrix(3, 512, dtype)}});
  }
  return all;
}

const CaseTable kTable(OpTag::kDequantize, cases());

}  // namespace
}  // namespace cyb::test
