// BlockSoftcap: caps of published models, wide and special values.
#include "conformance/case.hpp"
#include "ops/blocks.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const float cap : {30.0F, 50.0F, 0.5F}) {
    for (const Fill fill : kEdgeFills) {
      all.push_back({"cap_" + std::to_string(static_cast<int>(cap * 10)) + "_" + fill_name(fill),
                     {OpTag::kBlockSoftcap, BlockSoftcapAttrs{cap}.to_attrs()},
                     {activation({3, 33}, fill)}});
    }
  }
  return all;
}

const CaseTable kTable(OpTag::kBlockSoftcap, cases());

}  // namespace
}  // namespace cyb::test
