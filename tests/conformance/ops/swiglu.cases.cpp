// SwiGlu: the three arities, every weight format.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kSwiGlu, {}};
  CaseList all;
  for (const Fill fill : kEdgeFills)
    all.push_back({"halves_" + fill_name(fill), op, {activation({3, 14}, fill)}});
  for (const DType dtype : kWeightTypes) {
    all.push_back({"gate_up_" + std::string(dtype_name(dtype)),
                   op,
                   {activation({2, 256}), matrix(6, 256, dtype), matrix(6, 256, dtype)}});
  }
  all.push_back({"down", op, {activation({2, 3, 10}), matrix(6, 10), matrix(6, 10), matrix(4, 6)}});
  return all;
}

const CaseTable kTable(OpTag::kSwiGlu, cases());

}  // namespace
}  // namespace cyb::test
