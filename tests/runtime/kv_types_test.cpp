// KV pages in every type: memory as stated, determinism as ever, and an error that grows as the
// type gets smaller.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/generation.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

struct Way {
  std::string model, backend, path;
};

std::shared_ptr<Engine> engine_of(const Way& way, DType kv, unsigned threads = 1,
                                  std::uint32_t chunk = 512) {
  EngineOptions options;
  options.backend = way.backend;
  options.path = way.path;
  options.n_threads = threads;
  options.chunk_tokens = chunk;
  options.kv_dtype = kv;
  options.exact = true;  // activations in f32: what differs is the cache
  options.max_sequences = 3;
  return tiny_engine(way.model, options);
}

std::string way_name(const ::testing::TestParamInfo<Way>& info) {
  return info.param.model + "_" + info.param.backend + "_" + info.param.path;
}

class KvTypes : public ::testing::TestWithParam<Way> {};

double rms(std::span<const float> a, std::span<const float> b) {
  double sum = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    scale += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(sum / scale);
}

std::vector<float> logits_of(Engine& engine) {
  std::vector<float> out;
  const auto keep = [&](std::uint32_t, std::span<const float> row) {
    out.insert(out.end(), row.begin(), row.end());
    return Result<void>();
  };
  const auto done = all_logits(engine, some_ids(90), keep);
  EXPECT_TRUE(done.has_value()) << done.error().text();
  return out;
}

TEST_P(KvTypes, TheErrorFollowsTheSize) {
  const std::vector<float> exact = logits_of(*engine_of(GetParam(), DType::kF32));
  const double f16 = rms(logits_of(*engine_of(GetParam(), DType::kF16)), exact);
  const double q8 = rms(logits_of(*engine_of(GetParam(), DType::kQ8)), exact);
  const double q4 = rms(logits_of(*engine_of(GetParam(), DType::kQ4)), exact);
  // What a type adds follows its step: 2^-11 of a value, 1/127 and 1/8 of a block's largest. A
  // model of random weights with sharp attention makes more of each.
  EXPECT_GT(f16, 0);
  EXPECT_LT(f16, 5e-3);
  EXPECT_GT(q8, 4 * f16);
  EXPECT_LT(q8, 64 * f16);
  EXPECT_GT(q4, 4 * q8);
  EXPECT_LT(q4, 32 * q8);
}

TEST_P(KvTypes, NeitherThreadsNorChunksNorCompanyChangeABit) {
  for (const DType kv : {DType::kQ8, DType::kQ4}) {
    const std::vector<float> once = logits_of(*engine_of(GetParam(), kv));
    EXPECT_EQ(logits_of(*engine_of(GetParam(), kv, 2, 7)), once);
    EXPECT_EQ(logits_of(*engine_of(GetParam(), kv, 3, 16)), once);
    // Several answers fork in the middle of a page.
    const auto engine = engine_of(GetParam(), kv);
    Session session(engine), alone(engine);
    GenerateOptions request{.max_tokens = 20, .sampling = {.temperature = 1.0}, .seed = 3};
    const auto answers = value(generate_answers(session, some_ids(37), request, 2));
    request.row = 1;
    EXPECT_EQ(answers[1].tokens, value(generate(alone, some_ids(37), request)).tokens);
  }
}

TEST_P(KvTypes, MemoryIsWhatTheTypeSays) {
  // Of whole contexts: windows are planned in pages of the system (WindowRings, MemoryPlan).
  const auto bytes = [&](DType kv) {
    EngineOptions options;
    options.backend = GetParam().backend;
    options.path = GetParam().path;
    options.kv_dtype = kv;
    options.exact = true;
    options.rings = false;
    return static_cast<double>(tiny_engine(GetParam().model, options)->report().kv_bytes);
  };
  const double f32 = bytes(DType::kF32);
  EXPECT_NEAR(f32 / bytes(DType::kF16), 2.0, 0.05);
  // Heads of 16 channels fill half a block: the ratios of whole blocks are 3.76 and 7.1.
  EXPECT_GT(f32 / bytes(DType::kQ8), 1.8);
  EXPECT_GT(f32 / bytes(DType::kQ4), 3.5);
}

INSTANTIATE_TEST_SUITE_P(Tiny, KvTypes,
                         ::testing::Values(Way{"llama3", "cpu", "curated"},
                                           Way{"gemma3", "cpu", "curated"},
                                           Way{"qwen3", "reference", "curated"},
                                           Way{"llama2", "cpu", "graph"}),
                         way_name);

// The reference rounds the same blocks: with the cpu in f32 both see nearly the same values.
TEST(KvTypesPaths, TheReferenceAgrees) {
  for (const DType kv : {DType::kF16, DType::kQ8, DType::kQ4}) {
    const auto cpu = logits_of(*engine_of({"llama3", "cpu", "curated"}, kv));
    const auto reference = logits_of(*engine_of({"llama3", "reference", "curated"}, kv));
    // A value on the border of two codes may fall to either side.
    EXPECT_LT(rms(cpu, reference), kv == DType::kQ4 ? 2e-2 : 2e-3) << dtype_name(kv);
  }
}

TEST(KvTypesErrors, OtherTypesAreRefusedByName) {
  EngineOptions options;
  options.kv_dtype = DType::kQ6k;
  const auto engine = Engine::load(tiny_model("llama3"), options);
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().text().find("\"q6k\" is none of f32, f16, q8, q4"), std::string::npos)
      << engine.error().text();
}

}  // namespace
}  // namespace cyb::test
