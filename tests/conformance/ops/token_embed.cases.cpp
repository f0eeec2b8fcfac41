// TokenEmbed: every weight format, repeated ids, ranks of ids.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    all.push_back({std::string(dtype_name(dtype)),
                   {OpTag::kTokenEmbed, {}},
                   {indices({5}, 9), {Shape{9, 256}, Role::kGather, dtype, Fill::kNormal, 0}}});
  }
  all.push_back(
      {"batch",
       {OpTag::kTokenEmbed, {}},
       {indices({2, 3}, 4), {Shape{4, 7}, Role::kGather, DType::kF32, Fill::kSpecial, 0}}});
  return all;
}

const CaseTable kTable(OpTag::kTokenEmbed, cases());

}  // namespace
}  // namespace cyb::test
