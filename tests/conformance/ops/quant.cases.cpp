// Quantised integers and block formats: dtypes, axes, blocks, saturation, halves.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

Op quantize(std::int64_t axis, std::int64_t block, DType dtype) {
  return op_of(OpTag::kQuantizeLinear,
               {{"axis", axis}, {"block", block}, {"dtype", static_cast<std::int64_t>(dtype)}});
}
Op dequantize(std::int64_t axis, std::int64_t block) {
  return op_of(OpTag::kDequantizeLinear, {{"axis", axis}, {"block", block}});
}

CaseList quantizes() {
  CaseList all;
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI16, DType::kUint16}) {
    const std::string name(dtype_name(dtype));
    all.push_back(
        {name, quantize(0, 0, dtype), {activation({3, 20}), scalar(0.02), scalar(3, dtype)}});
    all.push_back({name + "_halves",
                   quantize(0, 0, dtype),
                   {given({0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9}, DType::kF32), scalar(1)}});
    all.push_back(
        {name + "_axis",
         quantize(1, 0, dtype),
         {activation({2, 3, 4}), given({0.1, 0.02, 0.5}, DType::kF32), given({1, 2, 3}, dtype)}});
    all.push_back({name + "_block",
                   quantize(1, 2, dtype),
                   {activation({2, 5}), activation({2, 3}, Fill::kPositive),
                    given({2, 3}, {1, 2, 3, 4, 5, 6}, dtype)}});
    all.push_back({name + "_special",
                   quantize(0, 0, dtype),
                   {activation({40}, Fill::kSpecial), scalar(0.1), scalar(9, dtype)}});
  }
  all.push_back({"f16",
                 quantize(0, 0, DType::kI8),
                 {activation({9}, Fill::kNormal, DType::kF16), scalar(0.05, DType::kF16)}});
  return all;
}

CaseList dequantizes() {
  CaseList all;
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kI16, DType::kUint16, DType::kI32}) {
    const std::string name(dtype_name(dtype));
    all.push_back({name,
                   dequantize(0, 0),
                   {activation({3, 7}, Fill::kNormal, dtype), scalar(0.02), scalar(3, dtype)}});
    all.push_back(
        {name + "_axis",
         dequantize(-1, 0),
         {activation({2, 3}, Fill::kNormal, dtype), given({0.1, 0.02, 0.5}, DType::kF32)}});
    all.push_back({name + "_block",
                   dequantize(0, 2),
                   {activation({5, 2}, Fill::kNormal, dtype), activation({3, 2}),
                    given({3, 2}, {1, 2, 3, 4, 5, 6}, dtype)}});
  }
  all.push_back({"f16",
                 dequantize(0, 0),
                 {activation({9}, Fill::kNormal, DType::kI8), scalar(0.05, DType::kF16)}});
  return all;
}

CaseList qlinear() {
  CaseList all;
  for (const DType dtype : {DType::kU8, DType::kI8}) {
    all.push_back({std::string(dtype_name(dtype)),
                   op_of(OpTag::kQLinearMatmul),
                   {activation({2, 9}, Fill::kNormal, dtype), scalar(0.02), scalar(5, dtype),
                    activation({9, 3}, Fill::kNormal, dtype), given({0.1, 0.2, 0.05}, DType::kF32),
                    given({1, 2, 3}, dtype), scalar(0.7), scalar(10, dtype)}});
  }
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kQuantizeLinear, quantizes()},
    {OpTag::kDequantizeLinear, dequantizes()},
    {OpTag::kDynamicQuantizeLinear,
     {{"f32", op_of(OpTag::kDynamicQuantizeLinear), {activation({3, 7})}},
      {"positive", op_of(OpTag::kDynamicQuantizeLinear), {activation({9}, Fill::kPositive)}},
      {"zeros", op_of(OpTag::kDynamicQuantizeLinear), {given({0, 0}, DType::kF32)}},
      {"empty", op_of(OpTag::kDynamicQuantizeLinear), {activation({0})}}}},
    {OpTag::kQLinearMatmul, qlinear()},
    {OpTag::kMatmulInteger,
     {{"u8_i8",
       op_of(OpTag::kMatmulInteger),
       {activation({2, 9}, Fill::kNormal, DType::kU8),
        activation({9, 3}, Fill::kNormal, DType::kI8), scalar(12, DType::kU8),
        scalar(-3, DType::kI8)}},
      {"rows",
       op_of(OpTag::kMatmulInteger),
       {activation({2, 2, 4}, Fill::kNormal, DType::kI8),
        activation({4, 3}, Fill::kNormal, DType::kU8), given({2, 1}, {1, 2}, DType::kI8),
        given({1, 2, 3}, DType::kU8)}},
      {"plain",
       op_of(OpTag::kMatmulInteger),
       {activation({3}, Fill::kNormal, DType::kU8), activation({3}, Fill::kNormal, DType::kU8)}}}},
    {OpTag::kQuantize,
     {{"q8", op_of(OpTag::kQuantize, {{"dtype", 6}}), {activation({2, 64})}},
      {"q4", op_of(OpTag::kQuantize, {{"dtype", 7}}), {activation({2, 32}, Fill::kWide)}},
      {"f16", op_of(OpTag::kQuantize, {{"dtype", 1}}), {activation({3, 5}, Fill::kWide)}},
      {"bf16", op_of(OpTag::kQuantize, {{"dtype", 2}}), {activation({3, 5}, Fill::kTiny)}},
      {"from_f16",
       op_of(OpTag::kQuantize, {{"dtype", 6}}),
       {activation({1, 32}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kKvCompress,
     {{"q4",
       op_of(OpTag::kKvCompress, {{"head_dim", 32}, {"bits", 4}}),
       {activation({1, 2, 3, 32})}},
      {"q8",
       op_of(OpTag::kKvCompress, {{"head_dim", 64}, {"bits", 8}}),
       {activation({1, 1, 2, 64})}}}},
    {OpTag::kKvDecompress,
     {{"q4",
       op_of(OpTag::kKvDecompress, {{"head_dim", 32}, {"bits", 4}}),
       {{Shape{2, 32}, Role::kGather, DType::kQ4, Fill::kNormal, 0}}},
      {"q8",
       op_of(OpTag::kKvDecompress, {{"head_dim", 32}, {"bits", 8}}),
       {{Shape{3, 32}, Role::kGather, DType::kQ8, Fill::kNormal, 0}}}}},
};

}  // namespace
}  // namespace cyb::test
