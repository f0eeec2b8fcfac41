// LayerNorm: with and without gain and bias, lengths around the lane count, edge values.
#include "ops/norm/layer_norm.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kLayerNorm, LayerNormAttrs{1e-5F}.to_attrs()};
  CaseList all;
  for (const std::int64_t d : {1, 7, 8, 9, 576}) {
    all.push_back({"f32_" + std::to_string(d), op, {activation({3, d}), gain(d), vector_of(d)}});
  }
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op, {activation({2, 33}, fill), gain(33)}});
  all.push_back({"plain", op, {activation({2, 33})}});
  all.push_back({"bias_only", op, {activation({2, 33}), absent(), vector_of(33)}});
  all.push_back(
      {"f16", op, {activation({3, 40}, Fill::kNormal, DType::kF16), gain(40), vector_of(40)}});
  return all;
}

const CaseTable kTable(OpTag::kLayerNorm, cases());

}  // namespace
}  // namespace cyb::test
