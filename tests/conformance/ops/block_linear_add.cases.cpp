// BlockLinearAdd: with and without bias, every weight format.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kBlockLinearAdd, {}};
  CaseList all;
  for (const DType dtype : kWeightTypes) {
    for (const std::int64_t rows : {1, 5}) {
      all.push_back({std::string(dtype_name(dtype)) + "_" + std::to_string(rows),
                     op,
                     {activation({rows, 256}), activation({rows, 33}), matrix(33, 256, dtype)}});
    }
  }
  all.push_back(
      {"bias", op, {activation({2, 40}), activation({2, 16}), matrix(16, 40), vector_of(16)}});
  return all;
}

const CaseTable kTable(OpTag::kBlockLinearAdd, cases());

}  // namespace
}  // namespace cyb::test
