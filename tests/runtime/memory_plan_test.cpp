// Engine::plan against engines that have run: pool by pool, and all of it as the system counts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <tuple>

#include "import/import.hpp"
#include "support/engine_support.hpp"
#include "support/models.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"

namespace cyb::test {
namespace {

constexpr double kTolerance = 0.02;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// What the allocator calls text may be cut into other blocks: a few kilobytes.
void expect_planned(const MemoryPools& planned, const MemoryPools& measured) {
  const auto want = memory_pools(planned), got = memory_pools(measured);
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (want[i].name == "process") continue;
    const double slack = want[i].name == "text" ? 8192 : 0;
    EXPECT_NEAR(static_cast<double>(want[i].bytes), static_cast<double>(got[i].bytes),
                kTolerance * static_cast<double>(got[i].bytes) + slack)
        << want[i].name;
  }
}

/// Every sequence with a full context.
void fill(Engine& engine, std::uint32_t n_sequences) {
  std::vector<Sequence> sequences;
  for (std::uint32_t i = 0; i < n_sequences; ++i) sequences.push_back(engine.new_sequence());
  for (Sequence& sequence : sequences) {
    while (sequence.position() < engine.ctx_tokens()) {
      const std::uint32_t left = engine.ctx_tokens() - sequence.position();
      const auto ids = some_ids(std::min(left, engine.chunk_tokens()));
      const SequenceStep step{&sequence, ids, LogitRows::kLast};
      CYB_ASSERT_OK(engine.step({&step, 1}, {}));
    }
  }
}

EngineOptions regime_options(const std::string& backend) {
  EngineOptions options;
  options.backend = backend;
  options.isa = backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.pack_cache = false;
  return options;
}

using Place = std::tuple<std::string, std::string, std::string>;  // model, backend, path

class PlannedMemory : public ::testing::TestWithParam<Place> {};

TEST_P(PlannedMemory, IsThatOfTheRun) {
  const auto& [name, backend, path] = GetParam();
  EngineOptions options = regime_options(backend);
  options.path = path;
  options.ctx_tokens = 64;
  options.chunk_tokens = 16;
  for (const DType kv : {DType::kF32, DType::kF16, DType::kQ8, DType::kQ4}) {
    for (const std::uint32_t batch : {1u, 3u}) {
      SCOPED_TRACE(std::string(dtype_name(kv)) + " x " + std::to_string(batch));
      options.kv_dtype = kv;
      options.max_sequences = batch;
      options.exact = kv == DType::kF32;
      const MemoryPlan plan = value(Engine::plan(tiny_model(name), options));
      const auto engine = value(Engine::load(tiny_model(name), options));
      EXPECT_EQ(plan.ctx_tokens, engine->ctx_tokens());
      EXPECT_EQ(plan.kv_dtype, engine->kv_dtype());
      EXPECT_EQ(plan.path, engine->path());
      fill(*engine, batch);
      if (batch == 1) expect_planned(plan.bytes, engine->memory());
      EXPECT_GT(plan.bytes.run, 0u);
      EXPECT_EQ(plan.bytes.kv, engine->kv_pool().page_bytes() * 4 * batch);
    }
  }
}

std::string place_name(const ::testing::TestParamInfo<Place>& info) {
  std::string name =
      std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param);
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tiny, PlannedMemory,
                         ::testing::Combine(::testing::Values("llama3", "gemma3", "gpt2"),
                                            ::testing::Values("reference", "cpu"),
                                            ::testing::Values("curated", "graph")),
                         place_name);

TEST(MemoryPlan, CountsAllSequences) {
  EngineOptions options = regime_options("cpu");
  options.ctx_tokens = 64;
  options.max_sequences = 3;
  const MemoryPlan plan = value(Engine::plan(tiny_model("llama3"), options));
  const auto engine = value(Engine::load(tiny_model("llama3"), options));
  std::vector<Sequence> sequences;
  for (int i = 0; i < 3; ++i) sequences.push_back(engine->new_sequence());
  const auto ids = some_ids(64);
  std::vector<SequenceStep> steps;
  for (Sequence& sequence : sequences) steps.push_back({&sequence, ids, LogitRows::kLast});
  CYB_ASSERT_OK(engine->step(steps, {}));
  expect_planned(plan.bytes, engine->memory());
}

/// Tensors that the backend cannot multiply are held as f32: counted without decoding them.
TEST(MemoryPlan, CountsWhatIsHeldAsF32) {
  const TemporaryFolder folder;
  for (const char* source : {"types.gguf", "fp8"}) {
    SCOPED_TRACE(source);
    ImportReport report;
    const std::string path = folder.file(std::string(source) + ".model");
    const std::string from = std::string(CYB_TESTS_DIR) + "/golden/encodings/" + source;
    value(import_model(from, path, {}, report));
    EngineOptions options = regime_options("cpu");
    options.chunk_tokens = 16;
    const MemoryPlan plan = value(Engine::plan(value(Model::open(path)), options));
    const auto engine = value(Engine::load(value(Model::open(path)), options));
    EXPECT_GT(engine->model().copied_bytes(), 0u);
    EXPECT_EQ(plan.bytes.weights_own, engine->memory().weights_own);
    EXPECT_EQ(plan.bytes.weights_mapped, engine->memory().weights_mapped);
    EXPECT_EQ(plan.notes, engine->report().notes);
  }
}

TEST(MemoryPlan, SaysWhatLoadingWouldSay) {
  EngineOptions options = regime_options("cpu");
  options.ctx_tokens = 1u << 20;
  const auto planned = Engine::plan(tiny_model("llama3"), options);
  const auto loaded = Engine::load(tiny_model("llama3"), options);
  ASSERT_FALSE(planned || loaded);
  EXPECT_EQ(planned.error().text(), loaded.error().text());
  options = regime_options("cpu");
  options.kv_dtype = DType::kI32;
  EXPECT_EQ(Engine::plan(tiny_model("llama3"), options).error().text(),
            Engine::load(tiny_model("llama3"), options).error().text());
}

std::uint64_t status_bytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(key)) return std::stoull(line.substr(key.size())) * 1024;
  }
  return 0;
}

class RealMemoryPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model_present(kSmolLm2)) << model_hint(kSmolLm2);
    ImportReport report;
    path_ = folder_.file("smollm2.model");
    value(import_model(model_file(kSmolLm2), path_, {}, report));
  }
  TemporaryFolder folder_;
  std::string path_;
};

/// The weights are not packed, and memory that was only counted takes none.
TEST_F(RealMemoryPlan, TakesLittleItself) {
  const auto model = value(Model::open(path_));
  const EngineOptions options = regime_options("cpu");
  const std::uint64_t before = status_bytes("RssAnon:");
  const MemoryPlan plan = value(Engine::plan(model, options));
  const std::uint64_t after = status_bytes("RssAnon:");
  EXPECT_GT(plan.bytes.weights_own, 90 * kMiB);
  EXPECT_GE(plan.bytes.kv, 180 * kMiB);
  EXPECT_LT(after, before + 24 * kMiB);
}

}  // namespace
}  // namespace cyb::test
