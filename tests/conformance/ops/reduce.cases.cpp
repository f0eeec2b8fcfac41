// Reductions, orders and running sums: axes, lengths around the lane count, dtypes, empty sets.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList by_attributes(OpTag tag) {
  CaseList all;
  for (const std::int64_t n : {1, 7, 8, 9, 100}) {
    all.push_back(
        {"last_" + std::to_string(n), op_of(tag, {{"axes", Ints{-1}}}), {activation({3, n})}});
  }
  all.push_back({"first", op_of(tag, {{"axes", Ints{0}}, {"keep", 1}}), {activation({5, 4})}});
  all.push_back({"two", op_of(tag, {{"axes", Ints{0, 2}}}), {activation({3, 4, 5})}});
  all.push_back({"all", op_of(tag, {{"keep", 1}}), {activation({3, 4, 5})}});
  for (const DType dtype : kNumberTypes) {
    all.push_back({std::string(dtype_name(dtype)),
                   op_of(tag, {{"axes", Ints{1}}}),
                   {activation({3, 11, 2}, Fill::kNormal, dtype)}});
  }
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op_of(tag, {{"axes", Ints{1}}}), {activation({4, 13}, fill)}});
  all.push_back({"no_rows", op_of(tag, {{"axes", Ints{1}}}), {activation({0, 3})}});
  return all;
}

CaseList by_kind() {
  CaseList all;
  for (std::int64_t kind = 0; kind < 10; ++kind) {
    const Op op = op_of(OpTag::kReduce, {{"kind", kind}});
    const Op keep = op_of(OpTag::kReduce, {{"kind", kind}, {"keep", 1}});
    const std::string name = std::to_string(kind) + "_";
    all.push_back({name + "all", op, {activation({3, 9}, Fill::kPositive)}});
    all.push_back({name + "axes", keep, {activation({3, 4, 5}), given({-1, 0})}});
    all.push_back({name + "empty", keep, {activation({2, 0, 4}), given({1})}});
    all.push_back({name + "noop",
                   op_of(OpTag::kReduce, {{"kind", kind}, {"noop", 1}}),
                   {activation({2, 3}), given(Shape{0}, {}, DType::kI64)}});
    all.push_back({name + "special", op, {activation({4, 13}, Fill::kSpecial), given({1})}});
    for (const DType dtype : {DType::kF16, DType::kF64, DType::kI32, DType::kI64, DType::kU8}) {
      all.push_back({name + std::string(dtype_name(dtype)),
                     op,
                     {activation({3, 5}, Fill::kPositive, dtype), given({1})}});
    }
  }
  all.push_back({"max_bool",
                 op_of(OpTag::kReduce, {{"kind", 2}}),
                 {activation({3, 5}, Fill::kNormal, DType::kBool), given({1})}});
  return all;
}

CaseList orders() {
  CaseList all;
  for (const std::int64_t kind : {0, 1}) {
    for (const std::int64_t last : {0, 1}) {
      const std::string name = std::to_string(kind) + std::to_string(last) + "_";
      const Op op =
          op_of(OpTag::kArgReduce, {{"kind", kind}, {"axis", 1}, {"keep", last}, {"last", last}});
      all.push_back({name + "ties",
                     op,
                     {given({3, 4}, {1, 3, 3, 2, 5, 5, 5, 5, -2, -1, -3, -1}, DType::kF32)}});
      all.push_back({name + "special", op, {activation({4, 30}, Fill::kSpecial)}});
      for (const DType dtype : kNumberTypes) {
        all.push_back({name + std::string(dtype_name(dtype)),
                       op,
                       {activation({2, 5, 3}, Fill::kSmall, dtype)}});
      }
    }
  }
  return all;
}

CaseList top() {
  CaseList all;
  for (const std::int64_t largest : {0, 1}) {
    const std::string name = std::to_string(largest) + "_";
    const Op op = op_of(OpTag::kTopKBy, {{"axis", 1}, {"largest", largest}, {"sorted", 1}});
    all.push_back({name + "special", op, {activation({3, 30}, Fill::kSpecial), given({7})}});
    for (const DType dtype : kNumberTypes) {
      all.push_back({name + std::string(dtype_name(dtype)),
                     op,
                     {activation({2, 5, 3}, Fill::kSmall, dtype), given({3})}});
    }
    all.push_back({name + "zero", op, {activation({2, 5}), given({0})}});
  }
  return all;
}

CaseList running() {
  CaseList all;
  for (std::int64_t bits = 0; bits < 8; ++bits) {
    const Op op = op_of(OpTag::kCumulative,
                        {{"kind", bits & 1}, {"exclusive", bits >> 1 & 1}, {"reverse", bits >> 2}});
    all.push_back(
        {"f32_" + std::to_string(bits), op, {activation({3, 5}), scalar(1, DType::kI32)}});
    all.push_back({"i32_" + std::to_string(bits),
                   op,
                   {activation({4, 2}, Fill::kNormal, DType::kI32), scalar(-2, DType::kI64)}});
    all.push_back({"f64_" + std::to_string(bits),
                   op,
                   {activation({4}, Fill::kNormal, DType::kF64), scalar(0, DType::kI64)}});
  }
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kReduceSum, by_attributes(OpTag::kReduceSum)},
    {OpTag::kReduceMean, by_attributes(OpTag::kReduceMean)},
    {OpTag::kReduceMax, by_attributes(OpTag::kReduceMax)},
    {OpTag::kReduceMin, by_attributes(OpTag::kReduceMin)},
    {OpTag::kReduce, by_kind()},
    {OpTag::kArgReduce, orders()},
    {OpTag::kTopK,
     {{"last", op_of(OpTag::kTopK, {{"k", 3}, {"axis", -1}}), {activation({2, 9})}},
      {"first", op_of(OpTag::kTopK, {{"k", 2}}), {activation({4, 3}, Fill::kSpecial)}},
      {"ties",
       op_of(OpTag::kTopK, {{"k", 4}, {"axis", -1}}),
       {given({1, 2, 2, 1, 2}, DType::kF32)}},
      {"f16",
       op_of(OpTag::kTopK, {{"k", 1}, {"axis", -1}}),
       {activation({3, 5}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kTopKBy, top()},
    {OpTag::kCumSum,
     {{"rows", op_of(OpTag::kCumSum, {{"axis", 1}}), {activation({3, 20})}},
      {"exclusive", op_of(OpTag::kCumSum, {{"exclusive", 1}}), {activation({5, 2}, Fill::kWide)}},
      {"special", op_of(OpTag::kCumSum), {activation({30}, Fill::kSpecial)}},
      {"i64", op_of(OpTag::kCumSum), {activation({5}, Fill::kNormal, DType::kI64)}},
      {"f16", op_of(OpTag::kCumSum), {activation({9}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kCumulative, running()},
};

}  // namespace
}  // namespace cyb::test
