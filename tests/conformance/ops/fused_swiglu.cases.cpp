// FusedSwiGlu: every weight format.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    all.push_back({std::string(dtype_name(dtype)),
                   {OpTag::kFusedSwiGlu, {}},
                   {activation({3, 256}), matrix(7, 256, dtype), matrix(7, 256, dtype)}});
  }
  return all;
}

const CaseTable kTable(OpTag::kFusedSwiGlu, cases());

}  // namespace
}  // namespace cyb::test
