// Transforms, attention forms, position embeddings, losses, sampling, schedules, inverses.
#include "conformance/case.hpp"

namespace cyb::test {
namespace {

CaseList dfts() {
  CaseList all;
  for (std::int64_t bits = 0; bits < 4; ++bits) {
    const Op op = op_of(OpTag::kDft, {{"inverse", bits & 1}, {"onesided", bits >> 1}});
    const std::string name = std::to_string(bits);
    const std::int64_t parts = (bits & 1) != 0 ? 2 : 1;
    all.push_back({"even_" + name, op, {activation({2, 8, parts})}});
    all.push_back(
        {"axis_" + name, op, {activation({5, 3, parts}), absent(), scalar(0, DType::kI64)}});
    all.push_back({"length_" + name, op, {activation({1, 6, parts}), scalar(7, DType::kI64)}});
    all.push_back({"f64_" + name, op, {activation({1, 7, parts}, Fill::kNormal, DType::kF64)}});
  }
  return all;
}

CaseList attentions() {
  CaseList all;
  for (std::int64_t scores = 0; scores < 4; ++scores) {
    const Op op = op_of(OpTag::kAttention, {{"causal", scores & 1},
                                            {"softcap", 2.0F},
                                            {"scores", scores},
                                            {"left_window", scores == 3 ? 2 : -1},
                                            {"right_window", -1}});
    const std::string name = std::to_string(scores);
    all.push_back({"plain_" + name,
                   op,
                   {activation({2, 4, 3, 8}), activation({2, 2, 5, 8}), activation({2, 2, 5, 6})}});
    all.push_back({"past_" + name,
                   op,
                   {activation({1, 2, 3, 8}), activation({1, 2, 3, 8}), activation({1, 2, 3, 8}),
                    activation({3, 5}), activation({1, 2, 2, 8}), activation({1, 2, 2, 8})}});
    all.push_back({"bool_" + name,
                   op,
                   {activation({1, 2, 3, 8}), activation({1, 2, 4, 8}), activation({1, 2, 4, 8}),
                    activation({3, 3}, Fill::kNormal, DType::kBool)}});
  }
  const Op packed = op_of(
      OpTag::kAttention,
      {{"q_heads", 4}, {"kv_heads", 2}, {"causal", 1}, {"left_window", -1}, {"right_window", -1}});
  all.push_back({"packed",
                 packed,
                 {activation({2, 3, 32}), activation({2, 5, 16}), activation({2, 5, 12}), absent(),
                  absent(), absent(), given({5, 2})}});
  all.push_back({"f16",
                 packed,
                 {activation({1, 3, 32}, Fill::kNormal, DType::kF16),
                  activation({1, 3, 16}, Fill::kNormal, DType::kF16),
                  activation({1, 3, 16}, Fill::kNormal, DType::kF16)}});
  return all;
}

CaseList samples() {
  CaseList all;
  for (std::int64_t method = 0; method < 6; ++method) {
    all.push_back({std::to_string(method),
                   op_of(OpTag::kSample, {{"method", method},
                                          {"temperature", 0.8F},
                                          {"p", 0.7F},
                                          {"k", 5},
                                          {"min_p", 0.05F},
                                          {"seed", 42}}),
                   {activation({4, 50}), given({0, 1, 2, 9}, DType::kI32)}});
  }
  all.push_back({"zero_temperature",
                 op_of(OpTag::kSample, {{"method", 1}, {"p", 1.0F}}),
                 {activation({3, 9}, Fill::kInfinite)}});
  return all;
}

CaseList schedules() {
  CaseList all;
  for (std::int64_t kind = 0; kind < 4; ++kind) {
    for (const std::int64_t steps : {1, 7}) {
      all.push_back({std::to_string(kind) + "_" + std::to_string(steps),
                     op_of(OpTag::kNoiseSchedule, {{"kind", kind},
                                                   {"train", 100},
                                                   {"steps", steps},
                                                   {"beta0", 0.00085F},
                                                   {"beta1", 0.012F},
                                                   {"shift", 3.0F}}),
                     {}});
    }
  }
  return all;
}

CaseList flows() {
  CaseList all;
  for (std::int64_t bits = 0; bits < 4; ++bits) {
    const Op op = op_of(OpTag::kFlowStep, {{"inverse", bits & 1}, {"flip", bits >> 1}});
    all.push_back({"logs_" + std::to_string(bits),
                   op,
                   {activation({2, 6, 3}), activation({2, 3, 3}), activation({2, 3, 3})}});
    all.push_back(
        {"mean_" + std::to_string(bits), op, {activation({1, 2, 5}), activation({1, 1, 5})}});
  }
  return all;
}

CaseList windows() {
  CaseList all;
  for (std::int64_t kind = 0; kind < 3; ++kind) {
    for (const std::int64_t periodic : {0, 1}) {
      all.push_back({std::to_string(kind) + std::to_string(periodic),
                     op_of(OpTag::kWindow, {{"kind", kind}, {"periodic", periodic}}),
                     {scalar(9, DType::kI64)}});
    }
    all.push_back({std::to_string(kind) + "_one",
                   op_of(OpTag::kWindow, {{"kind", kind}, {"dtype", 39}}),
                   {scalar(1, DType::kI64)}});
  }
  return all;
}

CaseList losses() {
  CaseList all;
  for (std::int64_t reduction = 0; reduction < 3; ++reduction) {
    const Op op =
        op_of(OpTag::kNllLoss, {{"reduction", reduction}, {"has_ignore", 1}, {"ignore", 2}});
    all.push_back({std::to_string(reduction),
                   op,
                   {activation({3, 5, 2}), given({3, 2}, {0, 1, 2, 3, 4, 2}, DType::kI64),
                    activation({5}, Fill::kPositive)}});
    all.push_back({"plain_" + std::to_string(reduction),
                   op,
                   {activation({3, 5}), given({0, 1, 2}, DType::kI32)}});
  }
  return all;
}

CaseList gated() {
  CaseList all;
  for (std::int64_t mode = 0; mode < 3; ++mode) {
    const Op op = op_of(OpTag::kGeGlu, {{"mode", mode}});
    all.push_back({"halves_" + std::to_string(mode), op, {activation({3, 8})}});
    all.push_back(
        {"weights_" + std::to_string(mode), op, {activation({3, 9}), matrix(5, 9), matrix(5, 9)}});
    all.push_back({"down_" + std::to_string(mode),
                   op,
                   {activation({3, 9}), matrix(5, 9), matrix(5, 9), matrix(4, 5)}});
  }
  all.push_back({"special", op_of(OpTag::kGeGlu), {activation({4, 20}, Fill::kSpecial)}});
  return all;
}

Op rotary(std::int64_t dim, std::int64_t heads, std::int64_t interleaved) {
  return op_of(OpTag::kRotaryEmbedding,
               {{"rope_dim", dim}, {"num_heads", heads}, {"interleaved", interleaved}});
}

Op text_counts(std::int64_t mode) {
  return op_of(OpTag::kTfIdf, {{"mode", mode},
                               {"min_gram", 1},
                               {"max_gram", 2},
                               {"max_skip", 1},
                               {"ngram_counts", Ints{0, 3}},
                               {"ngram_indexes", Ints{0, 1, 2, 3, 4}},
                               {"pool", Ints{2, 3, 5, 5, 3, 2, 2}}});
}

const Op kCross = op_of(OpTag::kSdpaCross, {{"num_heads", 4}, {"head_dim", 8}});
const Op kWindowed =
    op_of(OpTag::kSdpaWindow, {{"num_heads", 2}, {"head_dim", 4}, {"window_size", 3}});
const Op kSinus = op_of(OpTag::kSinusoidalEmbed, {{"dim", 8}, {"max_period", 10000.0F}});
const Op kRelative = op_of(OpTag::kRelativePosEmbedding,
                           {{"num_buckets", 8}, {"max_distance", 20}, {"bidirectional", 1}});
const Op kOneWay = op_of(OpTag::kRelativePosEmbedding, {{"num_buckets", 8}, {"max_distance", 20}});

const CaseTable kTables[] = {
    {OpTag::kDft, dfts()},
    {OpTag::kStft,
     {{"window",
       op_of(OpTag::kStft, {{"onesided", 1}}),
       {activation({2, 20, 1}), scalar(4, DType::kI64), activation({8})}},
      {"frame",
       op_of(OpTag::kStft),
       {activation({1, 11, 2}), scalar(3, DType::kI64), absent(), scalar(5, DType::kI64)}}}},
    {OpTag::kWindow, windows()},
    {OpTag::kMelWeightMatrix,
     {{"8",
       op_of(OpTag::kMelWeightMatrix),
       {scalar(8, DType::kI64), scalar(16, DType::kI64), scalar(8192, DType::kI64), scalar(0),
        scalar(4096)}}}},
    {OpTag::kAttention, attentions()},
    {OpTag::kSdpaCross,
     {{"f32",
       kCross,
       {activation({2, 4, 3, 8}), activation({2, 2, 5, 8}), activation({2, 2, 5, 6})}},
      {"mask",
       kCross,
       {activation({1, 4, 3, 8}), activation({1, 4, 5, 8}), activation({1, 4, 5, 8}),
        activation({1, 1, 1, 5}, Fill::kNormal, DType::kBool)}}}},
    {OpTag::kSdpaWindow,
     {{"f32",
       kWindowed,
       {activation({2, 2, 6, 4}), activation({2, 2, 6, 4}), activation({2, 2, 6, 4}),
        activation({2, 3, 3}), activation({2, 3, 3}, Fill::kInfinite)}},
      {"plain",
       kWindowed,
       {activation({1, 2, 3, 4}), activation({1, 2, 3, 4}), activation({1, 2, 3, 4})}}}},
    {OpTag::kSinusoidalEmbed,
     {{"0", kSinus, {activation({5}, Fill::kWide)}},
      {"1",
       op_of(OpTag::kSinusoidalEmbed,
             {{"dim", 6}, {"max_period", 100.0F}, {"layout", 1}, {"shift", 1.0F}}),
       {given({0, 1, 999}, DType::kI32)}},
      {"2",
       op_of(OpTag::kSinusoidalEmbed, {{"dim", 6}, {"max_period", 100.0F}, {"layout", 2}}),
       {activation({3}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kRelativePosEmbedding,
     {{"both",
       kRelative,
       {activation({8, 2}), given({0, 5, 40}, DType::kI32),
        given({0, 1, 2, 7, 30, 90}, DType::kI32)}},
      {"one",
       kOneWay,
       {activation({8, 2}, Fill::kNormal, DType::kF16), given({9}, DType::kI32),
        given({0, 5, 8, 9, 12}, DType::kI32)}}}},
    {OpTag::kPosEmbed,
     {{"f32",
       op_of(OpTag::kPosEmbed, {{"offset", 2}}),
       {given({0, 3, 1}, DType::kI32), activation({6, 5})}},
      {"q8",
       op_of(OpTag::kPosEmbed),
       {given({1, 0}, DType::kI32), {Shape{3, 32}, Role::kGather, DType::kQ8, Fill::kNormal, 0}}}}},
    {OpTag::kRotaryEmbedding,
     {{"halves",
       rotary(0, 0, 0),
       {activation({2, 2, 3, 8}), activation({2, 3, 4}), activation({2, 3, 4})}},
      {"pairs",
       rotary(4, 0, 1),
       {activation({2, 2, 3, 8}), activation({9, 2}), activation({9, 2}),
        given({2, 3}, {0, 1, 2, 6, 7, 8}, DType::kI64)}},
      {"packed",
       rotary(0, 2, 0),
       {activation({1, 3, 16}, Fill::kNormal, DType::kF16),
        activation({1, 3, 4}, Fill::kNormal, DType::kF16),
        activation({1, 3, 4}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kGeGlu, gated()},
    {OpTag::kShiftedInner,
     {{"f32",
       op_of(OpTag::kShiftedInner, {{"shifts", Ints{1, 2, 9}}}),
       {activation({2, 5}), activation({2, 5})}},
      {"f16",
       op_of(OpTag::kShiftedInner, {{"shifts", Ints{0}}}),
       {activation({3}, Fill::kNormal, DType::kF16),
        activation({3}, Fill::kNormal, DType::kF16)}}}},
    {OpTag::kShiftedWedge,
     {{"f32",
       op_of(OpTag::kShiftedWedge, {{"shifts", Ints{1, 3}}}),
       {activation({2, 5}), activation({2, 5})}},
      {"special",
       op_of(OpTag::kShiftedWedge, {{"shifts", Ints{2}}}),
       {activation({3, 9}, Fill::kSpecial), activation({3, 9})}}}},
    {OpTag::kNllLoss, losses()},
    {OpTag::kTfIdf,
     {{"tf",
       text_counts(0),
       {given({2, 8}, {2, 3, 5, 3, 2, 2, 5, 3, 9, 5, 3, 2, 2, 2, 3, 5}, DType::kI64)}},
      {"idf", text_counts(1), {given({2, 2, 5, 3}, DType::kI32)}}}},
    {OpTag::kSample, samples()},
    {OpTag::kNoiseSchedule, schedules()},
    {OpTag::kFlowStep, flows()},
    {OpTag::kMatrixInverse,
     {{"4", op_of(OpTag::kMatrixInverse), {activation({4, 4})}},
      {"1", op_of(OpTag::kMatrixInverse), {activation({1, 1}, Fill::kPositive)}},
      {"0", op_of(OpTag::kMatrixInverse), {activation({0, 0})}}}},
    {OpTag::kDet,
     {{"3", op_of(OpTag::kDet), {activation({3, 3})}},
      {"batch", op_of(OpTag::kDet), {activation({2, 2, 4, 4}, Fill::kNormal, DType::kF64)}},
      {"singular", op_of(OpTag::kDet), {given({2, 2}, {1, 2, 2, 4}, DType::kF32)}}}},
};

}  // namespace
}  // namespace cyb::test
