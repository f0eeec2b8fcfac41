// Recurrent layers and recurrences over state: directions, lengths, initial states, peepholes.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

constexpr std::int64_t kT = 4, kB = 3, kI = 5, kH = 2;

CaseList layers(OpTag tag, std::int64_t gates, const char* flag) {
  CaseList all;
  for (std::int64_t direction = 0; direction < 3; ++direction) {
    const std::int64_t d = direction == 2 ? 2 : 1;
    for (const std::int64_t first : {0, 1}) {
      std::vector<NamedAttr> attrs = {
          {"hidden", kH}, {"direction", direction}, {"batch_first", first}};
      if (flag != nullptr) attrs.push_back({flag, first});
      const Op op = make_op(tag, std::span<const NamedAttr>(attrs)).value();
      const Shape x = first != 0 ? Shape{kB, kT, kI} : Shape{kT, kB, kI},
                  h = first != 0 ? Shape{kB, d, kH} : Shape{d, kB, kH};
      std::vector<In> inputs = {activation(x), activation({d, gates * kH, kI}),
                                activation({d, gates * kH, kH})};
      const std::string name = std::to_string(direction) + std::to_string(first);
      all.push_back({"plain_" + name, op, inputs});
      inputs.push_back(activation({d, 2 * gates * kH}));
      inputs.push_back(given({4, 1, 3}, DType::kI32));
      inputs.push_back(activation(h));
      if (gates == 4) {
        inputs.push_back(activation(h));
        inputs.push_back(activation({d, 3 * kH}));
      }
      all.push_back({"full_" + name, op, inputs});
    }
  }
  for (const DType dtype : {DType::kF16, DType::kF64}) {
    all.push_back({std::string(dtype_name(dtype)),
                   op_of(tag, {{"hidden", kH}}),
                   {activation({kT, kB, kI}, Fill::kNormal, dtype),
                    activation({1, gates * kH, kI}, Fill::kNormal, dtype),
                    activation({1, gates * kH, kH}, Fill::kNormal, dtype)}});
  }
  all.push_back({"clip",
                 op_of(tag, {{"hidden", kH}, {"clip", 0.5F}}),
                 {activation({kT, kB, kI}), activation({1, gates * kH, kI}),
                  activation({1, gates * kH, kH})}});
  all.push_back({"no_steps",
                 op_of(tag, {{"hidden", kH}}),
                 {activation({0, kB, kI}), activation({1, gates * kH, kI}),
                  activation({1, gates * kH, kH})}});
  return all;
}

CaseList plain_lstms() {
  CaseList all;
  for (const std::int64_t both : {0, 1}) {
    const Op op = op_of(OpTag::kLstm, {{"hidden", kH}, {"bidirectional", both}});
    const std::int64_t d = both + 1;
    all.push_back(
        {"full_" + std::to_string(both),
         op,
         {activation({kT, kB, kI}), activation({d, 4 * kH, kI}), activation({d, 4 * kH, kH}),
          activation({d, 8 * kH}), activation({d, kB, kH}), activation({d, kB, kH})}});
    all.push_back(
        {"plain_" + std::to_string(both),
         op,
         {activation({kT, kB, kI}), activation({d, 4 * kH, kI}), activation({d, 4 * kH, kH})}});
  }
  return all;
}

CaseList dynamic_lstms() {
  CaseList all;
  for (std::int64_t direction = 0; direction < 3; ++direction) {
    const std::int64_t d = direction == 2 ? 2 : 1;
    const Op op = op_of(OpTag::kDynamicLstm, {{"hidden", kH}, {"direction", direction}});
    for (const DType dtype : {DType::kI8, DType::kU8}) {
      const std::string name = std::to_string(direction) + "_" + std::string(dtype_name(dtype));
      const In w = activation({d, kI, 4 * kH}, Fill::kNormal, dtype),
               r = activation({d, kH, 4 * kH}, Fill::kNormal, dtype);
      const std::vector<double> scales(static_cast<std::size_t>(d), 0.02),
          zeros(static_cast<std::size_t>(d), 3);
      all.push_back({"plain_" + name,
                     op,
                     {activation({kT, kB, kI}), w, r, given(scales, DType::kF32),
                      given(zeros, dtype), given(scales, DType::kF32), given(zeros, dtype)}});
      const In columns = activation({d, 4 * kH}, Fill::kPositive),
               column_zeros = activation({d, 4 * kH}, Fill::kSmall, dtype);
      all.push_back({"full_" + name,
                     op,
                     {activation({kT, kB, kI}), w, r, columns, column_zeros, columns, column_zeros,
                      activation({d, 8 * kH}), activation({d, kB, kH}), activation({d, kB, kH})}});
    }
  }
  all.push_back(
      {"no_steps",
       op_of(OpTag::kDynamicLstm, {{"hidden", kH}}),
       {activation({0, kB, kI}), activation({1, kI, 4 * kH}, Fill::kNormal, DType::kI8),
        activation({1, kH, 4 * kH}, Fill::kNormal, DType::kI8), given({0.02}, DType::kF32),
        given({0}, DType::kI8), given({0.02}, DType::kF32), given({0}, DType::kI8)}});
  return all;
}

CaseList linear_attentions() {
  CaseList all;
  for (std::int64_t rule = 0; rule < 4; ++rule) {
    const Op op = op_of(OpTag::kLinearAttention, {{"q_heads", 4}, {"kv_heads", 2}, {"rule", rule}});
    const bool gated = rule == 1 || rule == 3, delta = rule >= 2;
    std::vector<In> inputs = {activation({2, 3, 12}), activation({2, 3, 6}), activation({2, 3, 8}),
                              activation({2, 2, 3, 4})};
    if (gated || delta) inputs.push_back(gated ? activation({2, 3, 6}) : absent());
    if (delta) inputs.push_back(activation({2, 3, 2}, Fill::kPositive));
    all.push_back({std::to_string(rule), op, inputs});
  }
  return all;
}

const Op kScan = op_of(OpTag::kScan), kDelta = op_of(OpTag::kGatedDelta);

const CaseTable kTables[] = {
    {OpTag::kRnn, layers(OpTag::kRnn, 1, nullptr)},
    {OpTag::kGru, layers(OpTag::kGru, 3, "linear_before_reset")},
    {OpTag::kLstmFull, layers(OpTag::kLstmFull, 4, "input_forget")},
    {OpTag::kLstm, plain_lstms()},
    {OpTag::kDynamicLstm, dynamic_lstms()},
    {OpTag::kScan,
     {{"f32",
       kScan,
       {activation({2, 5, 3}), activation({2, 5, 3}, Fill::kPositive), activation({3, 4}),
        activation({2, 5, 4}), activation({2, 5, 4}), activation({3})}},
      {"plain",
       kScan,
       {activation({1, 1, 2}), activation({1, 1, 2}), activation({2, 9}), activation({1, 1, 9}),
        activation({1, 1, 9})}},
      {"f16",
       kScan,
       {activation({1, 4, 2}, Fill::kNormal, DType::kF16),
        activation({1, 4, 2}, Fill::kPositive, DType::kF16), activation({2, 3}),
        activation({1, 4, 3}), activation({1, 4, 3})}}}},
    {OpTag::kGatedDelta,
     {{"f32",
       kDelta,
       {activation({2, 2, 4, 3}), activation({2, 2, 4, 3}), activation({2, 2, 4, 5}),
        activation({2, 2, 4}), activation({2, 2, 4}, Fill::kPositive)}},
      {"one",
       kDelta,
       {activation({1, 1, 1, 9}), activation({1, 1, 1, 9}), activation({1, 1, 1, 1}),
        activation({1, 1, 1}), activation({1, 1, 1})}}}},
    {OpTag::kLinearAttention, linear_attentions()},
    {OpTag::kCausalConvState,
     {{"silu",
       op_of(OpTag::kCausalConvState, {{"activation", 1}}),
       {activation({2, 3, 5}), activation({3, 1, 4}), activation({3}), activation({2, 3, 3})}},
      {"plain", op_of(OpTag::kCausalConvState), {activation({1, 2, 2}), activation({2, 1, 4})}},
      {"one",
       op_of(OpTag::kCausalConvState),
       {activation({1, 2, 4}, Fill::kNormal, DType::kF16),
        activation({2, 1, 1}, Fill::kNormal, DType::kF16)}}}},
};

}  // namespace
}  // namespace cyb::test
