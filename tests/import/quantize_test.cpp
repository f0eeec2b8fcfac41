// Quantising: the rules for each tensor, rows that do not fit (N11), equal bytes for any number of
// threads, and nothing left behind.
#include "import/quantize/quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "import/import_support.hpp"
#include "import/quantize/rules.hpp"
#include "tensor/formats/encoders.hpp"

namespace cyb::test {
namespace {

DraftTensor tensor_of(const std::string& name, const Shape& shape, const std::vector<float>& data) {
  DraftTensor out;
  out.name = name;
  out.shape = shape;
  out.produce = [data](const ByteSink& sink) -> Result<void> {
    const auto bytes = std::as_bytes(std::span(data));
    for (std::size_t at = 0; at < bytes.size(); at += 1000)  // no multiple of anything
      if (auto done = sink(bytes.subspan(at, std::min<std::size_t>(1000, bytes.size() - at)));
          !done)
        return done;
    return {};
  };
  return out;
}

std::vector<float> random_values(std::size_t n, std::uint64_t seed = 1) {
  std::vector<float> out(n);
  for (float& v : out) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = (static_cast<float>(seed >> 40) / 0x1p24f - 0.5f) * 0.2f;
  }
  return out;
}

std::vector<float> decoded(const DraftTensor& tensor) {
  const std::vector<std::byte> bytes = produced(tensor);
  std::vector<float> out(static_cast<std::size_t>(tensor.shape.count()));
  format_info(tensor.dtype).decode(bytes.data(), out.data(), out.size());
  return out;
}

/// A draft with a llama's config and these tensors; the quantiser looks at no more.
ModelDraft draft_with(std::vector<DraftTensor> tensors) {
  ModelDraft draft;
  draft.name = "x";
  draft.config.set("model_type", "llama");
  draft.tensors = std::move(tensors);
  return draft;
}

quantize::Choice chosen(const char* name, const Shape& shape, DType to, bool has_head = true,
                        DType from = DType::kF32) {
  DraftTensor tensor;
  tensor.name = name;
  tensor.shape = shape;
  tensor.dtype = from;
  return quantize::choose(tensor, to, {has_head});
}

constexpr const char* kMatrix = "model.layers.3.mlp.up_proj.weight";

TEST(QuantizeRules, MatricesGetTheTarget) {
  EXPECT_EQ(chosen(kMatrix, {64, 512}, DType::kQ4k).to, DType::kQ4k);
  EXPECT_EQ(chosen(kMatrix, {64, 512}, DType::kQ4k).reason, "");
  EXPECT_EQ(chosen(kMatrix, {64, 96}, DType::kQ8).to, DType::kQ8);
  EXPECT_EQ(chosen("model.norm.weight", {512}, DType::kQ8).to, DType::kF32);
  EXPECT_EQ(chosen("model.layers.0.self_attn.q_proj.bias", {512}, DType::kQ8).to, DType::kF32);
  EXPECT_EQ(chosen("embeddings.position_embeddings.weight", {512, 64}, DType::kQ8).to, DType::kF32);
  EXPECT_EQ(chosen("cyb.particles", {512, 32}, DType::kQ8, true, DType::kU8).to, DType::kU8);
  EXPECT_EQ(chosen("model.layers.0.mlp.gate.weight", {8, 64}, DType::kQ8).to, DType::kF32);
}

TEST(QuantizeRules, TheHeadGetsMore) {
  EXPECT_EQ(chosen("lm_head.weight", {64, 512}, DType::kQ4k).to, DType::kQ6k);
  EXPECT_EQ(chosen("lm_head.weight", {64, 576}, DType::kQ4k).to, DType::kQ8);
  EXPECT_EQ(chosen("model.embed_tokens.weight", {64, 512}, DType::kQ4k).to, DType::kQ4k);
  EXPECT_EQ(chosen("model.embed_tokens.weight", {64, 512}, DType::kQ4k, false).to, DType::kQ6k);
  EXPECT_EQ(chosen("lm_head.weight", {64, 512}, DType::kQ8).to, DType::kQ8);
}

TEST(QuantizeRules, RowsThatDoNotFitGetAnotherEncoding) {
  // 896 = 3.5 blocks of 256, 4544 = 17.75, 13696 = 53.5, 14464 = 56.5.
  for (const std::int64_t row : {896, 4544, 13696, 14464}) {
    for (const auto& [to, want] : {std::pair(DType::kQ2k, DType::kQ4_1),
                                   {DType::kQ3k, DType::kQ4_1},
                                   {DType::kQ4k, DType::kQ5_0},
                                   {DType::kQ5k, DType::kQ5_1},
                                   {DType::kQ6k, DType::kQ8},
                                   {DType::kQ4, DType::kQ4}}) {
      const quantize::Choice choice = chosen(kMatrix, {4, row}, to);
      EXPECT_EQ(choice.to, want) << row;
      if (to == want) continue;
      EXPECT_NE(choice.reason.find("rows of " + std::to_string(row)), std::string::npos);
    }
  }
  const quantize::Choice none = chosen(kMatrix, {4, 100}, DType::kQ8, true, DType::kF16);
  EXPECT_EQ(none.to, DType::kF16);
  EXPECT_NE(none.reason.find("rows of 100"), std::string::npos);
}

TEST(QuantizeRules, Globs) {
  EXPECT_TRUE(matches_glob("*.v_proj.weight", "model.layers.0.self_attn.v_proj.weight"));
  EXPECT_TRUE(matches_glob("model.layers.?.*", "model.layers.0.x"));
  EXPECT_FALSE(matches_glob("model.layers.?.*", "model.layers.10.x"));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_FALSE(matches_glob("", "x"));
  EXPECT_TRUE(matches_glob("a*b*c", "axxbyybc"));
  EXPECT_FALSE(matches_glob("a*b*c", "axxbyyb"));
  EXPECT_FALSE(matches_glob(std::string(100, '*') + "x", std::string(10000, 'a')));
}

class QuantizeRows : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(QuantizeRows, ARowDoesNotDependOnTheNext) {
  const std::int64_t row = GetParam();
  const auto n = static_cast<std::size_t>(row);
  std::vector<float> one = random_values(3 * n), other = one;
  for (std::size_t i = n; i < 3 * n; ++i) other[i] *= 7;
  for (const DType to : {DType::kQ2k, DType::kQ4k, DType::kQ6k, DType::kQ4}) {
    QuantizeReport first, second;
    ModelDraft a = draft_with({tensor_of(kMatrix, Shape{3, row}, one)});
    ModelDraft b = draft_with({tensor_of(kMatrix, Shape{3, row}, other)});
    ASSERT_TRUE(quantize_draft(a, {.to = to, .n_threads = 1}, first));
    ASSERT_TRUE(quantize_draft(b, {.to = to, .n_threads = 1}, second));
    std::vector<float> x = decoded(a.tensors[0]), y = decoded(b.tensors[0]);
    x.resize(n);
    y.resize(n);
    EXPECT_EQ(x, y) << dtype_name(to);
    EXPECT_NE(decoded(a.tensors[0]), decoded(b.tensors[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(N11, QuantizeRows, ::testing::Values(896, 4544, 13696, 14464, 256, 32));

TEST(Quantize, BytesDoNotDependOnThreads) {
  // Above one chunk of 2^20 values, and no multiple of a piece.
  const Shape shape{4099, 512};
  const std::vector<float> data = random_values(static_cast<std::size_t>(shape.count()));
  for (const DType to : {DType::kQ4, DType::kQ3k}) {
    std::vector<std::byte> expected;
    double error = 0;
    for (const unsigned threads : {1u, 2u, 5u}) {
      QuantizeReport report;
      ModelDraft draft = draft_with({tensor_of(kMatrix, shape, data)});
      ASSERT_TRUE(quantize_draft(draft, {.to = to, .n_threads = threads}, report));
      const std::vector<std::byte> bytes = produced(draft.tensors[0]);
      ASSERT_EQ(bytes.size(), tensor_bytes(to, shape));
      if (threads == 1) {
        expected = bytes;
        error = report.tensors[0].squared_error;
        std::vector<std::byte> whole(bytes.size());
        formats::fine_encoder(to)(data.data(), nullptr, whole.data(), data.size());
        EXPECT_EQ(bytes, whole);
        EXPECT_GT(error, 0);
      }
      EXPECT_EQ(bytes, expected) << threads;
      EXPECT_EQ(report.tensors[0].squared_error, error) << threads;
    }
  }
}

TEST(Quantize, KeepRulesComeFirst) {
  const std::vector<float> data = random_values(256 * 4);
  const auto draft = [&] {
    return draft_with({tensor_of(kMatrix, Shape{4, 256}, data),
                       tensor_of("lm_head.weight", Shape{4, 256}, data),
                       tensor_of("model.norm.weight", Shape{256}, random_values(256))});
  };
  QuantizeReport report;
  ModelDraft one = draft();
  ASSERT_TRUE(quantize_draft(
      one, {.to = DType::kQ2k, .keep = {{"*.up_*", DType::kF16}, {"*", DType::kBf16}}}, report));
  EXPECT_EQ(one.tensors[0].dtype, DType::kF16);
  EXPECT_EQ(one.tensors[1].dtype, DType::kBf16);
  EXPECT_EQ(one.tensors[2].dtype, DType::kBf16);
  EXPECT_EQ(produced(one.tensors[0]).size(), 2048u);
  const auto problem = [&](KeepRule rule) {
    QuantizeReport unused;
    ModelDraft d = draft();
    const auto done = quantize_draft(d, {.to = DType::kQ8, .keep = {std::move(rule)}}, unused);
    return done ? std::string() : done.error().text();
  };
  EXPECT_NE(problem({"*.down_proj.*", DType::kQ8}).find("matches no tensor"), std::string::npos);
  EXPECT_NE(problem({"model.norm.*", DType::kQ8}).find("two dimensions"), std::string::npos);
}

TEST(Quantize, QuantisedSourcesHaveToBeAllowed) {
  const std::vector<float> data = random_values(256 * 4);
  DraftTensor blocks = tensor_of(kMatrix, Shape{4, 256}, data);
  std::vector<std::byte> raw(4 * 256 / 32 * 34);
  formats::encode_fine_q8(data.data(), nullptr, raw.data(), data.size());
  blocks.dtype = DType::kQ8;
  blocks.produce = [raw](const ByteSink& sink) { return sink(raw); };
  QuantizeReport report;
  ModelDraft draft = draft_with({blocks});
  const auto refused = quantize_draft(draft, {.to = DType::kQ4}, report);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("1 q8"), std::string::npos) << refused.error().text();
  QuantizeReport allowed;
  ModelDraft again = draft_with({blocks});
  ASSERT_TRUE(quantize_draft(again, {.to = DType::kQ4, .allow_requantize = true}, allowed));
  EXPECT_EQ(allowed.n_requantized, 1u);
  QuantizeReport same;
  ModelDraft copy = draft_with({blocks});
  ASSERT_TRUE(quantize_draft(copy, {.to = DType::kQ8}, same));
  EXPECT_EQ(produced(copy.tensors[0]), raw);
}

TEST(Quantize, ScalesOfEightBitFloatsAreInTheResult) {
  DraftTensor codes;
  codes.name = kMatrix;
  codes.shape = Shape{2, 256};
  codes.dtype = DType::kFp8e4m3;
  codes.produce = [](const ByteSink& sink) {
    const std::vector<std::byte> ones(512, std::byte{0x38});  // 1.0
    return sink(ones);
  };
  QuantizeReport report;
  ModelDraft draft =
      draft_with({codes, tensor_of(std::string(kMatrix) + ".scale", Shape{2}, {0.5f, -2.0f})});
  ASSERT_TRUE(quantize_draft(draft, {.to = DType::kQ8}, report));
  ASSERT_EQ(draft.tensors.size(), 1u);
  const std::vector<float> x = decoded(draft.tensors[0]);
  EXPECT_NEAR(x[0], 0.5f, 1e-3f);
  EXPECT_NEAR(x[511], -2.0f, 4e-3f);
  QuantizeReport unused;
  ModelDraft same = draft_with({codes});
  const auto none = quantize_draft(same, {.to = DType::kFp8e4m3}, unused);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("no encoder"), std::string::npos) << none.error().text();
}

TEST(Quantize, ValuesThatAreNotFiniteStopIt) {
  std::vector<float> data = random_values(256 * 40);
  data[9000] = NAN;
  QuantizeReport report;
  ModelDraft draft = draft_with({tensor_of(kMatrix, Shape{40, 256}, data)});
  ASSERT_TRUE(quantize_draft(draft, {.to = DType::kQ4k}, report));
  const auto done =
      draft.tensors[0].produce([](std::span<const std::byte>) { return Result<void>(); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), "F42");
  EXPECT_NE(done.error().text().find("element 9000"), std::string::npos);
  data[9000] = 1e6f;
  ModelDraft large = draft_with({tensor_of(kMatrix, Shape{40, 256}, data)});
  QuantizeReport unused;
  ASSERT_TRUE(quantize_draft(large, {.to = DType::kQ8, .keep = {{"*", DType::kF16}}}, unused));
  const auto f16 =
      large.tensors[0].produce([](std::span<const std::byte>) { return Result<void>(); });
  ASSERT_FALSE(f16);
  EXPECT_NE(f16.error().text().find("too large for f16"), std::string::npos);
}

TEST(Quantize, AModelWithoutAFamilyIsRefused) {
  ModelDraft draft = draft_with({});
  draft.config.set("model_type", "graph");
  QuantizeReport report;
  const auto done = quantize_draft(draft, {}, report);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind(), ErrorKind::kNotBuilt);
}

TEST(Quantize, AWholeModelIsWrittenAndReadAgain) {
  Checkpoint checkpoint("llama2");
  ImportReport imported;
  TemporaryFolder folder;
  ASSERT_TRUE(import_model(checkpoint.path(), folder.file("a.model"), {}, imported));
  const auto model = Model::open(folder.file("a.model"));
  ASSERT_TRUE(model);
  auto draft = draft_of_model(*model);
  ASSERT_TRUE(draft) << draft.error().text();
  const auto same = write_model(folder.file("same.model"), *draft);
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(same->model_id, (*model)->model_id().value());
  QuantizeReport report;
  ASSERT_TRUE(quantize_draft(*draft, {.to = DType::kQ4k}, report));
  const auto written = write_model(folder.file("b.model"), *draft);
  ASSERT_TRUE(written) << written.error().text();
  const auto result = Model::open(folder.file("b.model"), {.verify_weights = true});
  ASSERT_TRUE(result) << result.error().text();
  const auto whole = (*result)->verify();
  EXPECT_TRUE(whole) << whole.error().text();
  // Rows of 64 and 128 are below a block of 256.
  EXPECT_EQ((*result)->find_tensor("model.layers.0.self_attn.q_proj.weight")->dtype, DType::kQ5_0);
  EXPECT_EQ((*result)->find_tensor("lm_head.weight")->dtype, DType::kQ8);
  EXPECT_EQ((*result)->find_tensor("model.norm.weight")->dtype, DType::kF32);
  for (const QuantizedTensor& row : report.tensors)
    EXPECT_EQ(row.squared_error > 0, row.to != row.from) << row.name;
}

TEST(Quantize, AStopLeavesNothing) {
  Checkpoint checkpoint("llama2");
  ImportReport imported;
  auto draft = read_source(checkpoint.path(), imported);
  ASSERT_TRUE(draft);
  QuantizeReport report;
  ASSERT_TRUE(quantize_draft(*draft, {.to = DType::kQ8}, report));
  TemporaryFolder folder;
  std::stop_source stop;
  WriteOptions options;
  options.stop = stop.get_token();
  options.progress = [&](const WriteProgress& p) {
    if (p.what == "model.norm.weight") stop.request_stop();
  };
  ASSERT_FALSE(write_model(folder.file("a.model"), *draft, options));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace cyb::test
