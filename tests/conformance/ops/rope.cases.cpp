// Rope: the three styles, partial, given frequencies, positions per batch.
#include "ops/attention/rope.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::uint32_t d, std::uint32_t r, RopeStyle style) {
    return Op{OpTag::kRope, RopeAttrs{d, r, 10000.0F, style}.to_attrs()};
  };
  CaseList all;
  for (const RopeStyle style : {RopeStyle::kNeox, RopeStyle::kGptj, RopeStyle::kProportional}) {
    for (const std::uint32_t r : {16u, 6u, 0u}) {
      all.push_back({"style" + std::to_string(static_cast<int>(style)) + "_" + std::to_string(r),
                     op(16, r, style),
                     {activation({2, 3, 5, 16}), indices({5}, 100000)}});
    }
  }
  all.push_back(
      {"per_batch", op(8, 8, RopeStyle::kNeox), {activation({2, 1, 4, 8}), indices({2, 4}, 4096)}});
  all.push_back({"freqs",
                 op(8, 8, RopeStyle::kNeox),
                 {activation({1, 2, 4, 8}), indices({4}, 4096), gain(4)}});
  all.push_back({"special",
                 op(8, 8, RopeStyle::kNeox),
                 {activation({1, 2, 4, 8}, Fill::kSpecial), indices({4}, 64)}});
  all.push_back({"f16",
                 op(8, 8, RopeStyle::kNeox),
                 {activation({1, 2, 4, 8}, Fill::kNormal, DType::kF16), indices({4}, 64)}});
  all.push_back(
      {"empty", op(8, 8, RopeStyle::kNeox), {activation({1, 2, 0, 8}), indices({0}, 64)}});
  return all;
}

const CaseTable kTable(OpTag::kRope, cases());

}  // namespace
}  // namespace cyb::test
