// FusedSkipNorm: both results.
#include "conformance/case.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kFusedSkipNorm, RmsNormAttrs{1e-5F}.to_attrs()};
  return {{"f32", op, {activation({3, 33}), activation({3, 33}), gain(33)}},
          {"wide",
           op,
           {activation({2, 3, 8}, Fill::kWide), activation({2, 3, 8}, Fill::kWide), gain(8)}}};
}

const CaseTable kTable(OpTag::kFusedSkipNorm, cases());

}  // namespace
}  // namespace cyb::test
