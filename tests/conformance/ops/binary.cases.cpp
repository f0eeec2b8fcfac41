// Two and more inputs with broadcasting: every dtype, zero and unit dimensions, special values.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList pairs(const Op& op, const std::vector<DType>& dtypes, Fill fill, Fill second) {
  CaseList cases;
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{2, 3}, {2, 3}}, {{2, 3, 1}, {1, 4}}, {Shape{}, {5}}, {{3}, Shape{}}, {{0, 2}, {1}}};
  for (const DType dtype : dtypes) {
    for (const auto& [a, b] : shapes) {
      cases.push_back({std::string(dtype_name(dtype)) + "_" + shape_name(a) + "_" + shape_name(b),
                       op,
                       {activation(a, fill, dtype), activation(b, second, dtype)}});
    }
  }
  return cases;
}

CaseList with_edges(const Op& op, const std::vector<DType>& dtypes, Fill fill = Fill::kNormal,
                    Fill second = Fill::kNormal) {
  CaseList cases = pairs(op, dtypes, fill, second);
  for (const Fill edge : kEdgeFills) {
    cases.push_back(
        {"edge_" + fill_name(edge), op, {activation({5, 13}, edge), activation({13}, edge)}});
  }
  return cases;
}

CaseList compares() {
  CaseList all;
  for (const std::int64_t kind : {0, 1, 2, 3, 4, 5}) {
    std::vector<DType> dtypes = kNumberTypes;
    dtypes.push_back(DType::kBool);
    for (Case& c :
         with_edges(op_of(OpTag::kCompare, {{"kind", kind}}), dtypes, Fill::kSmall, Fill::kSmall)) {
      c.name += "_" + std::to_string(kind);
      all.push_back(std::move(c));
    }
  }
  return all;
}

/// Divisors that are never 0.
CaseList mods() {
  CaseList all;
  for (const std::int64_t fmod : {0, 1}) {
    const Op op = op_of(OpTag::kMod, {{"fmod", fmod}});
    for (const DType dtype : kNumberTypes) {
      const bool is_unsigned = dtype == DType::kU8 || dtype == DType::kUint16 ||
                               dtype == DType::kUint32 || dtype == DType::kUint64;
      const std::vector<double> divisors = is_unsigned ? std::vector<double>{1, 2, 3, 7, 100}
                                                       : std::vector<double>{3, -3, 7, -1, 100};
      all.push_back({std::string(dtype_name(dtype)) + "_" + std::to_string(fmod),
                     op,
                     {activation({4, 5}, Fill::kNormal, dtype), given(divisors, dtype)}});
    }
    all.push_back({"special_" + std::to_string(fmod),
                   op,
                   {activation({40}, Fill::kSpecial), activation({40}, Fill::kSpecial)}});
  }
  return all;
}

CaseList powers() {
  const Op op = op_of(OpTag::kPow);
  CaseList all = with_edges(op, kNumberTypes, Fill::kSmall, Fill::kSmall);
  all.push_back(
      {"grid",
       op,
       {given({11, 1}, {0, -0.0, 1, -1, 2, -2.5, 0.3, 1e30, -1e-30, 1e-42, 7}, DType::kF32),
        given({0, 1, -1, 2, 3, 0.5, -0.5, 64, 65, 1e9, -3}, DType::kF32)}});
  all.push_back({"int_by_real",
                 op,
                 {given({0, 1, 2, -3, 9}, DType::kI32), given({0.5, 2, 3, 3, 0.5}, DType::kF32)}});
  all.push_back({"real_by_int",
                 op,
                 {given({0, 1, 2, -3, 0.5}, DType::kF32), given({0, 5, 10, 3, -2}, DType::kI64)}});
  return all;
}

CaseList wheres() {
  CaseList all;
  const Op op = op_of(OpTag::kWhere);
  std::vector<DType> dtypes = kNumberTypes;
  dtypes.push_back(DType::kBool);
  for (const DType dtype : dtypes) {
    all.push_back(
        {std::string(dtype_name(dtype)),
         op,
         {activation({2, 3}, Fill::kNormal, DType::kBool),
          activation({2, 3}, Fill::kSpecial, dtype), activation({3}, Fill::kSpecial, dtype)}});
  }
  all.push_back(
      {"broadcast",
       op,
       {activation({4, 1}, Fill::kNormal, DType::kBool), activation({3}), activation({2, 1, 1})}});
  all.push_back(
      {"empty",
       op,
       {activation({0, 1}, Fill::kNormal, DType::kBool), activation({3}), activation(Shape{})}});
  return all;
}

CaseList extremes(OpTag tag) {
  CaseList all = with_edges(op_of(tag), kNumberTypes);
  all.push_back({"one", op_of(tag), {activation({3}, Fill::kSpecial)}});
  all.push_back(
      {"three", op_of(tag), {activation({3, 1}), activation({4}), activation({2, 1, 1})}});
  return all;
}

CaseList clips() {
  CaseList all;
  const Op op = op_of(OpTag::kClip);
  for (const DType dtype : kNumberTypes) {
    all.push_back(
        {std::string(dtype_name(dtype)),
         op,
         {activation({3, 5}, Fill::kNormal, dtype), scalar(1, dtype), scalar(100, dtype)}});
  }
  all.push_back({"special", op, {activation({40}, Fill::kSpecial), scalar(-0.5), scalar(0.5)}});
  all.push_back({"no_min", op, {activation({3, 5}), absent(), scalar(0.25)}});
  all.push_back({"min_only", op, {activation({3, 5}), scalar(0.25)}});
  all.push_back({"none", op, {activation({3, 5}, Fill::kSpecial)}});
  all.push_back({"crossed", op, {activation({3, 5}), scalar(1), scalar(-1)}});
  return all;
}

CaseList shifts() {
  CaseList all;
  for (const std::int64_t left : {0, 1}) {
    for (const DType dtype : kIntTypes) {
      all.push_back(
          {std::string(dtype_name(dtype)) + "_" + std::to_string(left),
           op_of(OpTag::kBitShift, {{"left", left}}),
           {activation({9}, Fill::kNormal, dtype), given({0, 1, 5, 7, 8, 15, 31, 63, 64}, dtype)}});
    }
  }
  return all;
}

CaseList prelus() {
  const Op op = op_of(OpTag::kPRelu);
  CaseList all = {{"channels", op, {activation({2, 3, 4}), activation({3})}},
                  {"one", op, {activation({2, 3, 4}), activation({1})}},
                  {"full", op, {activation({2, 3}), activation({2, 3})}},
                  {"broadcast", op, {activation({2, 3, 4}), activation({3, 1})}},
                  {"empty", op, {activation({0, 3}), activation({3})}}};
  for (const DType dtype : {DType::kF16, DType::kF64, DType::kI32}) {
    all.push_back(
        {std::string(dtype_name(dtype)),
         op,
         {activation({2, 3, 4}, Fill::kSpecial, dtype), activation({3}, Fill::kSmall, dtype)}});
  }
  for (const Fill fill : kEdgeFills)
    all.push_back({fill_name(fill), op, {activation({4, 13}, fill), activation({13})}});
  return all;
}

const CaseTable kTables[] = {
    {OpTag::kPow, powers()},
    {OpTag::kMod, mods()},
    {OpTag::kCompare, compares()},
    {OpTag::kWhere, wheres()},
    {OpTag::kMax, extremes(OpTag::kMax)},
    {OpTag::kMin, extremes(OpTag::kMin)},
    {OpTag::kClip, clips()},
    {OpTag::kBitShift, shifts()},
    {OpTag::kPRelu, prelus()},
    {OpTag::kGlu,
     {{"f32", op_of(OpTag::kGlu), {activation({3, 8})}},
      {"f16", op_of(OpTag::kGlu), {activation({3, 8}, Fill::kNormal, DType::kF16)}},
      {"f64", op_of(OpTag::kGlu), {activation({2}, Fill::kNormal, DType::kF64)}},
      {"special", op_of(OpTag::kGlu), {activation({4, 20}, Fill::kSpecial)}},
      {"empty", op_of(OpTag::kGlu), {activation({0, 4})}}}},
    {OpTag::kBitwiseAnd, pairs(op_of(OpTag::kBitwiseAnd), kIntTypes, Fill::kNormal, Fill::kNormal)},
    {OpTag::kBitwiseOr, pairs(op_of(OpTag::kBitwiseOr), kIntTypes, Fill::kNormal, Fill::kNormal)},
    {OpTag::kBitwiseXor, pairs(op_of(OpTag::kBitwiseXor), kIntTypes, Fill::kNormal, Fill::kNormal)},
    {OpTag::kAnd, pairs(op_of(OpTag::kAnd), {DType::kBool}, Fill::kNormal, Fill::kNormal)},
    {OpTag::kOr, pairs(op_of(OpTag::kOr), {DType::kBool}, Fill::kNormal, Fill::kNormal)},
    {OpTag::kXor, pairs(op_of(OpTag::kXor), {DType::kBool}, Fill::kNormal, Fill::kNormal)},
};

}  // namespace
}  // namespace cyb::test
