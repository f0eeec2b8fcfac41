// Matmul: lengths around the lane count, every weight format, bias, batches, edge values.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  CaseList all;
  const Op op{OpTag::kMatmul, {}};
  for (const std::int64_t k : {1, 7, 8, 9, 31, 64, 576}) {
    for (const std::int64_t m : {1, 3}) {
      all.push_back({"f32_" + std::to_string(m) + "x" + std::to_string(k),
                     op,
                     {activation({m, k}), matrix(5, k)}});
    }
  }
  for (const std::int64_t n : {1, 15, 16, 17, 33}) {
    all.push_back({"rows_" + std::to_string(n), op, {activation({2, 32}), matrix(n, 32)}});
  }
  for (const DType dtype : kWeightTypes) {
    for (const std::int64_t m : {1, 5}) {
      const std::string name = std::string(dtype_name(dtype)) + "_" + std::to_string(m);
      all.push_back({"weight_" + name, op, {activation({m, 512}), matrix(19, 512, dtype)}});
    }
    all.push_back({"wide_" + std::string(dtype_name(dtype)),
                   op,
                   {activation({2, 256}, Fill::kWide), matrix(4, 256, dtype)}});
  }
  all.push_back({"bias", op, {activation({2, 3, 40}), matrix(6, 40), vector_of(6)}});
  all.push_back({"batched", op, {activation({2, 1, 3, 20}), activation({4, 5, 20})}});
  all.push_back(
      {"f16", op, {activation({3, 40}, Fill::kNormal, DType::kF16), matrix(6, 40, DType::kF16)}});
  all.push_back({"empty", op, {activation({0, 16}), matrix(4, 16)}});
  for (const Fill fill : {Fill::kTiny, Fill::kSpecial}) {
    all.push_back({fill_name(fill), op, {activation({3, 64}, fill), matrix(4, 64)}});
  }
  return all;
}

const CaseTable kTable(OpTag::kMatmul, cases());

}  // namespace
}  // namespace cyb::test
