// Norms over channels and rows, and the softmax family.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

/// x of several shapes and dtypes, with vectors of its channels behind.
CaseList channels(const Op& op, std::size_t vectors, std::int64_t c) {
  CaseList all;
  const auto inputs = [&](const Shape& shape, DType dtype, Fill fill) {
    std::vector<In> in = {activation(shape, fill, dtype)};
    for (std::size_t k = 0; k < vectors; ++k)
      in.push_back({Shape{c}, Role::kActivation, dtype, Fill::kPositive, 0});
    return in;
  };
  for (const Shape& shape : {Shape{2, c, 3, 2}, Shape{1, c, 1}, Shape{2, c, 9}, Shape{0, c, 4}}) {
    all.push_back({"f32_" + shape_name(shape), op, inputs(shape, DType::kF32, Fill::kNormal)});
  }
  for (const DType dtype : {DType::kF16, DType::kF64}) {
    all.push_back({std::string(dtype_name(dtype)), op, inputs({2, c, 5}, dtype, Fill::kNormal)});
  }
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op, inputs({2, c, 5}, DType::kF32, fill)});
  return all;
}

CaseList rows(const Op& op) {
  CaseList all = {{"middle", op, {activation({2, 3, 4})}},
                  {"f16", op, {activation({2, 9, 3}, Fill::kNormal, DType::kF16)}},
                  {"f64", op, {activation({2, 9}, Fill::kNormal, DType::kF64)}},
                  {"empty", op, {activation({0, 3})}},
                  {"infinite", op, {activation({3, 40}, Fill::kInfinite)}}};
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op, {activation({4, 13}, fill)}});
  for (const std::int64_t n : {1, 7, 8, 9, 1000})
    all.push_back({"n_" + std::to_string(n), op, {activation({2, n})}});
  return all;
}

const Op kLayer = op_of(OpTag::kLayerNormFull, {{"axis", -2}, {"eps", 1e-5F}});
const Op kRms = op_of(OpTag::kRmsNormFrom, {{"axis", -2}, {"eps", 1e-5F}});
const Op kAda = op_of(OpTag::kAdaLN, {{"eps", 1e-6F}});

const CaseTable kTables[] = {
    {OpTag::kBatchNorm, channels(op_of(OpTag::kBatchNorm, {{"eps", 1e-5F}}), 4, 3)},
    {OpTag::kGroupNorm,
     channels(op_of(OpTag::kGroupNorm, {{"num_groups", 2}, {"eps", 1e-5F}}), 2, 4)},
    {OpTag::kInstanceNorm, channels(op_of(OpTag::kInstanceNorm, {{"eps", 1e-5F}}), 2, 3)},
    {OpTag::kLrn,
     channels(op_of(OpTag::kLrn, {{"size", 3}, {"alpha", 0.1F}, {"beta", 0.75F}, {"bias", 1.0F}}),
              0, 5)},
    {OpTag::kMeanVarianceNorm,
     channels(op_of(OpTag::kMeanVarianceNorm, {{"axes", Ints{1, 2}}}), 0, 3)},
    {OpTag::kLpNorm, rows(op_of(OpTag::kLpNorm, {{"axis", 1}, {"p", 2}}))},
    {OpTag::kLogSoftmax, rows(op_of(OpTag::kLogSoftmax, {{"dim", 1}}))},
    {OpTag::kHardmax, rows(op_of(OpTag::kHardmax, {{"dim", 1}}))},
    {OpTag::kLayerNormFull,
     {{"f32", kLayer, {activation({2, 3, 5}), activation({3, 5}), activation({5})}},
      {"plain", kLayer, {activation({2, 3, 5})}},
      {"f16",
       kLayer,
       {activation({2, 3, 5}, Fill::kNormal, DType::kF16),
        activation({3, 5}, Fill::kNormal, DType::kF16)}},
      {"f64", kLayer, {activation({2, 3, 5}, Fill::kNormal, DType::kF64)}},
      {"special", kLayer, {activation({3, 4, 5}, Fill::kSpecial)}}}},
    {OpTag::kRmsNormFrom,
     {{"f32", kRms, {activation({2, 3, 5}), activation({3, 5})}},
      {"f16",
       kRms,
       {activation({2, 3, 5}, Fill::kNormal, DType::kF16),
        activation({5}, Fill::kNormal, DType::kF16)}},
      {"special", kRms, {activation({3, 4, 5}, Fill::kSpecial), activation({5})}}}},
    {OpTag::kAdaLN,
     {{"f32", kAda, {activation({2, 3, 8}), activation({2, 1, 8}), activation({8})}},
      {"f16",
       kAda,
       {activation({3, 8}, Fill::kNormal, DType::kF16), activation({8}, Fill::kNormal, DType::kF16),
        activation({1}, Fill::kNormal, DType::kF16)}},
      {"special", kAda, {activation({3, 9}, Fill::kSpecial), activation({9}), activation({9})}}}},
};

}  // namespace
}  // namespace cyb::test
