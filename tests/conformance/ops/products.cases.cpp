// Products of matrices and tensors over dtypes, broadcasts and lengths around the lane count.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

std::vector<std::byte> text(std::string_view s) {
  const auto raw = std::as_bytes(std::span(s));
  return {raw.begin(), raw.end()};
}

Op einsum(std::string_view equation) {
  return op_of(OpTag::kEinsum, {{"equation", text(equation)}});
}

CaseList matmuls() {
  const Op op = op_of(OpTag::kBatchMatmul);
  CaseList all;
  for (const DType dtype : kNumberTypes) {
    all.push_back(
        {std::string(dtype_name(dtype)),
         op,
         {activation({3, 9}, Fill::kNormal, dtype), activation({9, 4}, Fill::kNormal, dtype)}});
  }
  all.push_back({"batched", op, {activation({2, 1, 3, 5}), activation({4, 5, 2})}});
  all.push_back({"vector_left", op, {activation({5}), activation({2, 5, 3})}});
  all.push_back({"vector_right", op, {activation({2, 3, 5}), activation({5})}});
  all.push_back({"dot", op, {activation({5}), activation({5})}});
  all.push_back({"no_inner", op, {activation({2, 0}), activation({0, 3})}});
  all.push_back({"special", op, {activation({3, 20}, Fill::kSpecial), activation({20, 3})}});
  return all;
}

CaseList gemms() {
  CaseList all;
  for (std::int64_t bits = 0; bits < 4; ++bits) {
    const Op op =
        op_of(OpTag::kGemm,
              {{"alpha", 0.5F}, {"beta", 2.0F}, {"trans_a", bits & 1}, {"trans_b", bits >> 1}});
    const Shape a = (bits & 1) != 0 ? Shape{9, 3} : Shape{3, 9},
                b = (bits >> 1) != 0 ? Shape{4, 9} : Shape{9, 4};
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64}) {
      all.push_back({std::string(dtype_name(dtype)) + "_" + std::to_string(bits),
                     op,
                     {activation(a, Fill::kNormal, dtype), activation(b, Fill::kNormal, dtype),
                      activation({4}, Fill::kNormal, dtype)}});
    }
    all.push_back({"plain_" + std::to_string(bits), op, {activation(a), activation(b)}});
  }
  all.push_back({"i32",
                 op_of(OpTag::kGemm, {{"alpha", 1.0F}, {"beta", 1.0F}}),
                 {activation({2, 3}, Fill::kSmall, DType::kI32),
                  activation({3, 2}, Fill::kSmall, DType::kI32),
                  activation({2, 1}, Fill::kSmall, DType::kI32)}});
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kBatchMatmul, matmuls()},
    {OpTag::kGemm, gemms()},
    {OpTag::kEinsum,
     {{"matmul", einsum("ij,jk->ik"), {activation({3, 9}), activation({9, 4})}},
      {"implicit", einsum("ij,jk"), {activation({3, 9}), activation({9, 4})}},
      {"trace", einsum("ii->"), {activation({5, 5})}},
      {"diagonal", einsum("ii->i"), {activation({5, 5})}},
      {"transpose", einsum("ij->ji"), {activation({2, 3})}},
      {"ellipsis", einsum("...ij,...jk->...ik"), {activation({2, 1, 3, 4}), activation({5, 4, 2})}},
      {"three",
       einsum("ab,bc,cd->ad"),
       {activation({2, 3}), activation({3, 4}), activation({4, 2})}},
      {"outer", einsum("i, j -> i j"), {activation({3}), activation({4})}},
      {"f64",
       einsum("bij,bjk->bik"),
       {activation({2, 3, 4}, Fill::kNormal, DType::kF64),
        activation({2, 4, 2}, Fill::kNormal, DType::kF64)}},
      {"i32",
       einsum("ij,j->i"),
       {activation({3, 4}, Fill::kNormal, DType::kI32),
        activation({4}, Fill::kNormal, DType::kI32)}}}},
    {OpTag::kKron,
     {{"f32", op_of(OpTag::kKron), {activation({2, 3}), activation({4, 2})}},
      {"f64",
       op_of(OpTag::kKron),
       {activation({2, 1}, Fill::kNormal, DType::kF64),
        activation({1, 3}, Fill::kNormal, DType::kF64)}},
      {"special", op_of(OpTag::kKron), {activation({3, 5}, Fill::kSpecial), activation({2, 2})}}}},
    {OpTag::kLoraApply,
     {{"f32",
       op_of(OpTag::kLoraApply, {{"rank", 2}, {"alpha", 4.0F}}),
       {activation({3, 5}), activation({3, 7}), activation({2, 7}), activation({5, 2})}},
      {"f16",
       op_of(OpTag::kLoraApply, {{"rank", 1}, {"alpha", 1.0F}}),
       {activation({2, 3, 4}, Fill::kNormal, DType::kF16),
        activation({2, 3, 9}, Fill::kNormal, DType::kF16), activation({1, 9}), activation({4, 1})}},
      {"packed_one_row",
       op_of(OpTag::kLoraApply, {{"rank", 16}, {"alpha", 16.0F}}),
       {activation({1, 70}),
        activation({1, 100}),
        {Shape{16, 100}, Role::kMatmul},
        {Shape{70, 16}, Role::kMatmul}}},
      {"packed_few_rows",
       op_of(OpTag::kLoraApply, {{"rank", 3}, {"alpha", 1.5F}}),
       {activation({4, 33}),
        activation({4, 7}),
        {Shape{3, 7}, Role::kMatmul},
        {Shape{33, 3}, Role::kMatmul}}},
      {"packed_rows",
       op_of(OpTag::kLoraApply, {{"rank", 20}, {"alpha", 5.0F}}),
       {activation({83, 48}),
        activation({83, 64}),
        {Shape{20, 64}, Role::kMatmul},
        {Shape{48, 20}, Role::kMatmul}}},
      {"packed_batch",
       op_of(OpTag::kLoraApply, {{"rank", 1}, {"alpha", 2.0F}}),
       {activation({2, 9, 16}),
        activation({2, 9, 130}),
        {Shape{1, 130}, Role::kMatmul},
        {Shape{16, 1}, Role::kMatmul}}}}},
    {OpTag::kRoutedMatmul,
     {{"f32",
       op_of(OpTag::kRoutedMatmul),
       {activation({3, 9}), activation({4, 5, 9}), indices({3, 2}, 4)}},
      {"q4",
       op_of(OpTag::kRoutedMatmul),
       {activation({2, 64}),
        {Shape{3, 4, 64}, Role::kMatmul, DType::kQ4, Fill::kNormal, 0},
        indices({2, 2}, 3)}}}},
};

}  // namespace
}  // namespace cyb::test
