// BlockNormLinear: one to three weights, biases, every weight format, odd sizes.
#include "conformance/case.hpp"
#include "ops/blocks.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const auto op = [](std::uint32_t n) {
    return Op{OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5F, n}.to_attrs()};
  };
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    for (const std::int64_t rows : {1, 5}) {
      all.push_back({std::string(dtype_name(dtype)) + "_" + std::to_string(rows),
                     op(3),
                     {activation({rows, 256}), gain(256), matrix(48, 256, dtype),
                      matrix(16, 256, dtype), matrix(17, 256, dtype)}});
    }
  }
  all.push_back({"one", op(1), {activation({4, 40}), gain(40), matrix(3, 40)}});
  all.push_back({"biases",
                 op(2),
                 {activation({2, 64}), gain(64), matrix(16, 64), matrix(8, 64), vector_of(16),
                  vector_of(8)}});
  all.push_back(
      {"second_bias",
       op(2),
       {activation({2, 64}), gain(64), matrix(16, 64), matrix(8, 64), absent(), vector_of(8)}});
  return all;
}

const CaseTable kTable(OpTag::kBlockNormLinear, cases());

}  // namespace
}  // namespace cyb::test
