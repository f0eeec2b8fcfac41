// Picking and placing by index, and lengths that depend on data.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList scatters(OpTag tag, const Shape& shape, const In& indices, const Shape& updates) {
  CaseList all;
  for (const std::int64_t reduction : {0, 1, 2, 3, 4}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kI32, DType::kU8}) {
      all.push_back({std::string(dtype_name(dtype)) + "_" + std::to_string(reduction),
                     op_of(tag, {{"reduction", reduction}}),
                     {activation(shape, Fill::kSpecial, dtype), indices,
                      activation(updates, Fill::kSpecial, dtype)}});
    }
  }
  return all;
}

CaseList uniques() {
  CaseList all;
  for (const std::int64_t sorted : {0, 1}) {
    const std::string name = std::to_string(sorted);
    const Op flat = op_of(OpTag::kUnique, {{"sorted", sorted}});
    all.push_back({"flat_" + name, flat, {given({3, 1, 1, 2, 3, 0}, DType::kF32)}});
    all.push_back({"i64_" + name, flat, {activation({3, 9}, Fill::kSmall, DType::kI64)}});
    all.push_back({"special_" + name, flat, {activation({60}, Fill::kSpecial)}});
    all.push_back({"axis_" + name,
                   op_of(OpTag::kUnique, {{"has_axis", 1}, {"axis", 1}, {"sorted", sorted}}),
                   {given({2, 4}, {1, 0, 1, 0, 2, 3, 2, 3}, DType::kF32)}});
    all.push_back({"empty_" + name, flat, {activation({0})}});
  }
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kGatherElements,
     {{"rows",
       op_of(OpTag::kGatherElements),
       {activation({3, 4}), given({2, 4}, {0, -1, 2, 1, 2, 2, -3, 0}, DType::kI64)}},
      {"columns",
       op_of(OpTag::kGatherElements, {{"axis", 1}}),
       {activation({2, 3}, Fill::kSpecial, DType::kF16),
        given({2, 2}, {0, 2, 1, 1}, DType::kI32)}}}},
    {OpTag::kGatherNd,
     {{"rows", op_of(OpTag::kGatherNd), {activation({3, 4}), given({2, 1}, {2, -3}, DType::kI64)}},
      {"elements",
       op_of(OpTag::kGatherNd),
       {activation({3, 4}, Fill::kSpecial), given({2, 2}, {2, 3, 0, -1}, DType::kI64)}},
      {"batched",
       op_of(OpTag::kGatherNd, {{"batch_dims", 1}}),
       {activation({2, 3, 2}), given({2, 1}, {1, 2}, DType::kI64)}}}},
    {OpTag::kScatterElements,
     scatters(OpTag::kScatterElements, {3, 4},
              given({3, 4}, {0, 1, 2, 0, 0, 1, -1, 2, 2, 2, 0, 1}, DType::kI64), {3, 4})},
    {OpTag::kScatterNd,
     scatters(OpTag::kScatterNd, {4, 3}, given({3, 1}, {1, 3, 1}, DType::kI64), {3, 3})},
    {OpTag::kTensorScatter,
     {{"linear",
       op_of(OpTag::kTensorScatter, {{"axis", -2}}),
       {activation({2, 1, 4, 3}), activation({2, 1, 2, 3}), given({0, 2})}},
      {"circular",
       op_of(OpTag::kTensorScatter, {{"axis", 1}, {"circular", 1}}),
       {activation({2, 4}), activation({2, 3}), given({3, 1})}},
      {"start",
       op_of(OpTag::kTensorScatter, {{"axis", 1}}),
       {activation({2, 4}), activation({2, 3})}}}},
    {OpTag::kNonZero,
     {{"f32", op_of(OpTag::kNonZero), {given({2, 3}, {0, 1, -0.0, 2, 0, 3}, DType::kF32)}},
      {"bool", op_of(OpTag::kNonZero), {activation({3, 5}, Fill::kNormal, DType::kBool)}},
      {"special", op_of(OpTag::kNonZero), {activation({60}, Fill::kSpecial)}},
      {"none", op_of(OpTag::kNonZero), {given({0, 0}, DType::kI64)}},
      {"scalar", op_of(OpTag::kNonZero), {scalar(2)}}}},
    {OpTag::kCompress,
     {{"flat", op_of(OpTag::kCompress), {activation({2, 3}), given({0, 1, 1, 0, 1}, DType::kBool)}},
      {"axis",
       op_of(OpTag::kCompress, {{"has_axis", 1}, {"axis", 1}}),
       {activation({2, 3}, Fill::kSpecial), given({1, 0, 1}, DType::kBool)}},
      {"none",
       op_of(OpTag::kCompress, {{"has_axis", 1}}),
       {activation({2, 3}), given({0, 0}, DType::kBool)}}}},
    {OpTag::kUnique, uniques()},
};

}  // namespace
}  // namespace cyb::test
