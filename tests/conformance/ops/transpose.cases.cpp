// Transpose: default and given permutations, element sizes, an empty dimension.
#include "ops/layout/transpose.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    const std::string name(dtype_name(dtype));
    all.push_back({name + "_swap",
                   {OpTag::kTranspose, TransposeAttrs{{}}.to_attrs()},
                   {activation({2, 3, 4}, Fill::kNormal, dtype)}});
    all.push_back({name + "_perm",
                   {OpTag::kTranspose, TransposeAttrs{{2, 0, 1}}.to_attrs()},
                   {activation({2, 3, 4}, Fill::kNormal, dtype)}});
  }
  all.push_back({"heads",
                 {OpTag::kTranspose, TransposeAttrs{{0, 2, 1, 3}}.to_attrs()},
                 {activation({1, 5, 3, 8})}});
  all.push_back(
      {"empty", {OpTag::kTranspose, TransposeAttrs{{}}.to_attrs()}, {activation({0, 3})}});
  return all;
}

const CaseTable kTable(OpTag::kTranspose, cases());

}  // namespace
}  // namespace cyb::test
