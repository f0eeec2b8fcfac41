// FusedNormMatmul: every weight format.
#include "conformance/case.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    all.push_back({std::string(dtype_name(dtype)),
                   {OpTag::kFusedNormMatmul, RmsNormAttrs{1e-5F}.to_attrs()},
                   {activation({3, 256}), gain(256), matrix(7, 256, dtype)}});
  }
  return all;
}

const CaseTable kTable(OpTag::kFusedNormMatmul, cases());

}  // namespace
}  // namespace cyb::test
