// BlockNormAdd: lengths around the lane count, wide values.
#include "conformance/case.hpp"
#include "ops/blocks.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kBlockNormAdd, BlockNormAddAttrs{1e-6F}.to_attrs()};
  CaseList all;
  for (const std::int64_t d : {1, 7, 8, 9, 576}) {
    all.push_back(
        {"f32_" + std::to_string(d), op, {activation({3, d}), activation({3, d}), gain(d)}});
  }
  all.push_back({"wide", op, {activation({2, 16}), activation({2, 16}, Fill::kWide), gain(16)}});
  return all;
}

const CaseTable kTable(OpTag::kBlockNormAdd, cases());

}  // namespace
}  // namespace cyb::test
