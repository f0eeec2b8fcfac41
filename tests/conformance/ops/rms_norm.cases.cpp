// RmsNorm: lengths around the lane count, edge values, f16.
#include "ops/norm/rms_norm.hpp"
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList cases() {
  const Op op{OpTag::kRmsNorm, RmsNormAttrs{1e-5F}.to_attrs()};
  CaseList all;
  for (const std::int64_t d : {1, 7, 8, 9, 64, 576}) {
    all.push_back({"f32_" + std::to_string(d), op, {activation({3, d}), gain(d)}});
  }
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op, {activation({2, 3, 33}, fill), gain(33)}});
  all.push_back({"f16", op, {activation({3, 40}, Fill::kNormal, DType::kF16), gain(40)}});
  all.push_back({"empty", op, {activation({0, 40}), gain(40)}});
  all.push_back({"no_eps",
                 {OpTag::kRmsNorm, RmsNormAttrs{0.0F}.to_attrs()},
                 {activation({2, 16}), gain(16)}});
  return all;
}

const CaseTable kTable(OpTag::kRmsNorm, cases());

}  // namespace
}  // namespace cyb::test
