// Loading, steady-state allocations, logits of given tokens, bench, memory, sampling defaults.
#include "runtime/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/config.hpp"
#include "runtime/bench.hpp"
#include "runtime/generation.hpp"
#include "runtime/logits.hpp"
#include "runtime/memory.hpp"
#include "runtime/sampling.hpp"
#include "support/alloc_count.hpp"
#include "support/engine_support.hpp"
#include "support/regime.hpp"

namespace cyb::test {
namespace {

TEST(EngineLoad, UnknownNamesAreRefused) {
  const auto with = [](const char* path, const char* backend) {
    EngineOptions options;
    options.path = path;
    options.backend = backend;
    options.pack_cache = false;
    return Engine::load(tiny_model("llama2"), options);
  };
  const auto path = with("fast", "cpu");
  ASSERT_FALSE(path.has_value());
  EXPECT_EQ(path.error().code(), "D7");
  const auto backend = with("auto", "tpu");
  ASSERT_FALSE(backend.has_value());
  EXPECT_EQ(backend.error().code(), "D7");
  const auto nox = with("nox", "cpu");
  ASSERT_FALSE(nox.has_value());
  EXPECT_EQ(nox.error().code(), "D4");
}

TEST(EngineLoad, WithoutFusionThePlanHoldsPlainOps) {
  const auto ops_of = [](bool fuse) {
    const auto backend = std::make_shared<ScriptedBackend>();
    EngineOptions options;
    options.pack_cache = false;
    options.fuse = fuse;
    scripted_engine(tiny_model("gemma3"), backend, options);
    return backend->compiled;
  };
  const auto n_fused = [](const std::vector<OpTag>& ops) {
    return std::ranges::count_if(
        ops, [](OpTag tag) { return op_info(tag).fused && tag != OpTag::kBlockAttention; });
  };
  const std::vector<OpTag> blocks = ops_of(true), plain = ops_of(false);
  EXPECT_GT(n_fused(blocks), 0);
  EXPECT_EQ(n_fused(plain), 0);
  EXPECT_GT(plain.size(), blocks.size());
}

TEST(EngineLoad, ReportsWhatItTook) {
  EngineOptions options;
  options.backend = "reference";
  options.ctx_tokens = 50;
  const auto engine = tiny_engine("llama2", options);
  const LoadReport& report = engine->report();
  EXPECT_EQ(engine->ctx_tokens(), 50u);
  EXPECT_EQ(engine->trained_tokens(), 128u);
  EXPECT_EQ(report.mapped_bytes, engine->model().file_bytes());
  // 2 layers, K and V, 4 heads of 16, f32; 50 tokens are 4 pages of 16.
  EXPECT_EQ(report.kv_bytes, 2u * 2 * 4 * 16 * 4 * 64);
  EXPECT_GT(report.load_ms, 0);
  EXPECT_EQ(engine->stop_ids().size(), 1u);
  EXPECT_EQ(engine->stop_ids()[0], 2);
}

TEST(EngineLoad, MoreMemoryThanThereIsIsRefused) {
  TextModelOptions model;
  model.max_positions = 16'000'000;
  EngineOptions options;
  options.ctx_tokens = 16'000'000;
  options.max_sequences = 40'000;  // 2.5 TB at the 4 bytes a token of the scripted backend
  const auto loaded = Engine::load(text_model(model), std::make_shared<ScriptedBackend>(), options);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::kOutOfMemory) << loaded.error().text();
  EXPECT_TRUE(loaded.error().text().starts_with("KV cache of 640000000000 tokens"))
      << loaded.error().text();
}

TEST(EngineLoad, AbsurdSizesAreRefused) {
  for (int which = 0; which < 3; ++which) {
    EngineOptions options;
    (which == 0   ? options.max_sequences
     : which == 1 ? options.chunk_tokens
                  : options.max_outputs) = 70'000;
    const auto loaded =
        Engine::load(tiny_model("llama2"), std::make_shared<ScriptedBackend>(), options);
    ASSERT_FALSE(loaded.has_value());
    EXPECT_EQ(loaded.error().kind(), ErrorKind::kInvalidConfig);
  }
}

TEST(EngineLoad, Cancelled) {
  std::stop_source source;
  source.request_stop();
  EngineOptions options;
  options.stop = source.get_token();
  options.pack_cache = false;
  const auto loaded =
      Engine::load(tiny_model("llama2"), std::make_shared<ScriptedBackend>(), options);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().kind(), ErrorKind::kCancelled);
}

// After the first decode step a step allocates nothing, in this code and in everything below it.
void expect_no_allocation(const std::string& backend, bool exact,
                          const std::string& path = "curated") {
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.exact = exact;
  options.n_threads = regime_threads();
  options.isa = backend == "cpu" ? regime_isa() : "";
  const auto engine = tiny_engine("llama3", options);
  Session session(engine);
  value(session.prefill(some_ids(30)));
  auto user = value(session.use());
  std::int32_t next = 1;
  const LogitsSink sink = [&next](std::size_t, std::span<const float> row) {
    next = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
  };
  for (int i = 0; i < 2; ++i) CYB_ASSERT_OK(user.advance(next, sink));
  const AllocationCount count;
  // Over page boundaries; the graph's plan is for up to 64 past positions.
  for (int i = 0; i < (path == "graph" ? 28 : 40); ++i) {
    const auto done = user.advance(next, sink);
    if (!done) FAIL() << done.error().text();
  }
  EXPECT_EQ(count.news(), 0u) << backend << " " << path;
}
TEST(Allocations, NoneInADecodeStepOfTheGraph) {
  expect_no_allocation("cpu", false, "graph");
}
/// The graph's plans are for up to so many past positions: one position after the other, over the
/// ends of such plans, gives the bits of long chunks.
TEST(GraphPath, PositionsOneByOneGiveTheBitsOfChunks) {
  for (const std::string backend : {"cpu", "reference"}) {
    EngineOptions options;
    options.backend = backend;
    options.path = "graph";
    options.n_threads = regime_threads();
    options.max_sequences = 2;
    const auto engine = tiny_engine("llama3", options);
    const std::vector<std::int32_t> ids = some_ids(100);
    ASSERT_GT(engine->ctx_tokens(), ids.size());
    Session chunks(engine), single(engine);
    value(chunks.prefill(ids));
    value(single.prefill(std::span(ids).first(60)));
    {
      auto user = value(single.use());
      for (const std::int32_t id : std::span(ids).subspan(60))
        CYB_ASSERT_OK(user.append(std::span(&id, 1)));
      const auto got = user.last_logits();
      auto other = value(chunks.use());
      const auto want = other.last_logits();
      ASSERT_EQ(got.size(), want.size());
      ASSERT_FALSE(want.empty());
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size_bytes()), 0) << backend;
    }
  }
}
TEST(Allocations, NoneInADecodeStepOnCpu) {
  expect_no_allocation("cpu", false);
}
TEST(Allocations, NoneInADecodeStepOnCpuExact) {
  expect_no_allocation("cpu", true);
}

TEST(Allocations, NoneInAnAnswer) {
  const auto engine =
      scripted_engine(text_model({}), std::make_shared<ScriptedBackend>(scripted_answer(2, {'x'})));
  Session session(engine);
  std::uint64_t before = 0, most = 0;
  std::size_t n = 0;
  const auto watch = [&](std::string_view) {
    const std::uint64_t now = total_news();
    // The first steps may allocate; the text and the backend's record of runs grow by doubling.
    if (++n > 40 && n < 58) most = std::max(most, now - before);
    before = now;
  };
  value(generate(session, std::vector<std::int32_t>{'a', 'b'}, {.max_tokens = 64}, watch));
  EXPECT_EQ(most, 0u);
}

TEST(Logits, ChunksOfOutputsGiveAllRows) {
  const auto backend = std::make_shared<ScriptedBackend>();
  EngineOptions options;
  options.max_outputs = 3;
  const auto few = scripted_engine(tiny_model("llama2"), backend, options);
  options.max_outputs = 64;
  const auto many = scripted_engine(tiny_model("llama2"), backend, options);
  const auto ids = some_ids(20);
  std::vector<float> a, b;
  std::vector<std::uint32_t> firsts;
  CYB_ASSERT_OK(
      all_logits(*few, ids, [&](std::uint32_t first, std::span<const float> rows) -> Result<void> {
        firsts.push_back(first);
        a.insert(a.end(), rows.begin(), rows.end());
        return {};
      }));
  CYB_ASSERT_OK(
      all_logits(*many, ids, [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
        b.insert(b.end(), rows.begin(), rows.end());
        return {};
      }));
  EXPECT_EQ(a.size(), 20u * 256);
  EXPECT_EQ(a, b);
  EXPECT_EQ(firsts, (std::vector<std::uint32_t>{0, 3, 6, 9, 12, 15, 18}));
  CYB_EXPECT_ERROR(all_logits(*few, ids,
                              [](std::uint32_t first, std::span<const float>) -> Result<void> {
                                if (first == 6) return fail(invalid_input("enough"));
                                return {};
                              }),
                   "input: enough");
}

TEST(Logits, PerplexityOfAKnownDistribution) {
  // Each next id is certain to be one more than the last, with probability e / (e + 255).
  const auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    logits[static_cast<std::size_t>(history.back() + 1) % logits.size()] = 1.0f;
  };
  const auto engine = scripted_engine(tiny_model("llama2"), backend);
  std::vector<std::int32_t> ids(100);
  std::iota(ids.begin(), ids.end(), 10);
  const double nll = std::log(std::exp(1.0) + 255) - 1;
  PerplexityReport all = value(perplexity(*engine, ids));
  EXPECT_EQ(all.n_tokens, 99u);
  EXPECT_EQ(all.n_windows, 1u);
  EXPECT_NEAR(all.mean_nll, nll, 1e-9);
  EXPECT_NEAR(all.perplexity, std::exp(nll), 1e-6);
  PerplexityOptions options;
  options.window_tokens = 33;
  std::vector<std::uint64_t> done;
  options.progress = [&](std::uint64_t n, std::uint64_t, double) { done.push_back(n); };
  all = value(perplexity(*engine, ids, options));
  EXPECT_EQ(all.n_tokens, 96u);  // 3 windows of 33 and a last token that nothing precedes
  EXPECT_EQ(all.n_windows, 3u);
  EXPECT_NEAR(all.mean_nll, nll, 1e-9);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{33, 66, 99}));
  CYB_EXPECT_ERROR(perplexity(*engine, std::span(ids).first(1)),
                   "input: perplexity needs two tokens or more");
}

TEST(Logits, PerplexityOfSecondHalves) {
  // What has fewer than 16 tokens before it is predicted wrongly: it must not be counted.
  const auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    const std::int32_t next = history.size() > 16 ? history.back() + 1 : history.back();
    logits[static_cast<std::size_t>(next) % logits.size()] = 1.0f;
  };
  const auto engine = scripted_engine(tiny_model("llama2"), backend);
  std::vector<std::int32_t> ids(100);
  std::iota(ids.begin(), ids.end(), 10);
  PerplexityOptions options;
  options.window_tokens = 33;
  options.second_half = true;
  const PerplexityReport half = value(perplexity(*engine, ids, options));
  EXPECT_EQ(half.n_windows, 3u);       // the token after them fills no window
  EXPECT_EQ(half.n_tokens, 3u * 16u);  // rows 16..31 of each
  EXPECT_NEAR(half.mean_nll, std::log(std::exp(1.0) + 255) - 1, 1e-9);
  CYB_EXPECT_ERROR(perplexity(*engine, std::span(ids).first(32), options),
                   "input: the text has 32 tokens, and a window 33: none is full");
}

TEST(Bench, MeasuresEveryCase) {
  BenchOptions options;
  options.engine.backend = "reference";
  options.engine.pack_cache = false;
  options.engine.chunk_tokens = 16;
  options.prompts = {8, 20};
  options.decodes = {3};
  options.batches = {1, 3};
  options.threads = {1};
  options.n_repeats = 2;
  std::vector<std::string> names;
  options.on_row = [&](const BenchRow& row) { names.push_back(row.what.name()); };
  const auto rows = value(run_bench(tiny_model("llama2"), options));
  EXPECT_EQ(names, (std::vector<std::string>{"pp8", "pp20", "tg3", "pp8 b3", "pp20 b3", "tg3 b3"}));
  for (const BenchRow& row : rows) {
    EXPECT_EQ(row.seconds.size(), 2u);
    EXPECT_GT(row.tps_min, 0);
    EXPECT_LE(row.tps_min, row.tps_median);
    EXPECT_LE(row.tps_median, row.tps_max);
  }
  options.decodes = {0};
  EXPECT_FALSE(run_bench(tiny_model("llama2"), options).has_value());
}

TEST(Bench, Medians) {
  BenchRow row;
  row.what.n_prompt = 10;
  row.what.batch = 2;
  row.seconds = {4, 1, 2};
  summarise(row);
  EXPECT_EQ(row.tps_median, 10);
  EXPECT_EQ(row.tps_min, 5);
  EXPECT_EQ(row.tps_max, 20);
  row.seconds = {4, 1, 2, 3};
  summarise(row);
  EXPECT_EQ(row.tps_median, 8);
}

TEST(Memory, IsPlausible) {
  EXPECT_GT(usable_memory_bytes(), std::uint64_t{1} << 20);
  EXPECT_GT(peak_resident_bytes(), std::uint64_t{1} << 20);
  EXPECT_LT(peak_resident_bytes(), std::uint64_t{1} << 40);
}

ConfigTable sampling_part(std::initializer_list<std::pair<std::string, ConfigValue>> keys) {
  ConfigTable out;
  for (const auto& [key, v] : keys) out.table("sampling").set(key, v);
  return out;
}

TEST(Sampling, DefaultsOfTheConfig) {
  EXPECT_TRUE(value(read_sampling({})).greedy);
  EXPECT_FALSE(value(read_sampling(sampling_part({{"temperature", 0.6}}))).greedy);
  EXPECT_TRUE(
      value(read_sampling(sampling_part({{"temperature", 0.6}, {"method", "greedy"}}))).greedy);
  const SamplingDefaults d = value(read_sampling(
      sampling_part({{"method", "top_k"}, {"top_k", 5}, {"top_p", 0.5}, {"min_p", 0.1}})));
  EXPECT_EQ(d.chain.top_k, 5u);
  EXPECT_EQ(d.chain.top_p, 1.0);
  EXPECT_EQ(d.chain.min_p, 0.0);
  CYB_EXPECT_ERROR(read_sampling(sampling_part({{"method", "beam"}})),
                   "config: sampling.method: \"beam\" is none of greedy, temperature, top_k, "
                   "top_p, min_p, chain");
  EXPECT_FALSE(read_sampling(sampling_part({{"top_p", 1.5}})).has_value());
}

TEST(Sampling, ARequestTurnsGreedyIntoTheChain) {
  const SamplingDefaults greedy = value(
      read_sampling(sampling_part({{"method", "greedy"}, {"temperature", 0.6}, {"top_k", 20}})));
  EXPECT_EQ(resolve_sampling(greedy, {}, 1).temperature, 0.0);
  const SamplingConfig chain = resolve_sampling(greedy, {.top_p = 0.9}, 1);
  EXPECT_EQ(chain.temperature, 0.6);
  EXPECT_EQ(chain.top_k, 20u);
  EXPECT_EQ(chain.top_p, 0.9);
  EXPECT_EQ(resolve_sampling(greedy, {.temperature = 0}, 1).temperature, 0.0);
  // Values that mean "off", and those that only shape another sampler, ask for no chance.
  SamplingOverrides off;
  off.top_k = 0;
  off.top_p = off.typical_p = 1.0;
  off.min_p = off.temperature_range = off.top_n_sigma = off.xtc_probability = off.mirostat_tau =
      0.0;
  off.temperature_exponent = off.xtc_threshold = off.mirostat_eta = 0.3;
  EXPECT_EQ(resolve_sampling(greedy, off, 1).temperature, 0.0);
  off.top_k = 5;
  EXPECT_EQ(resolve_sampling(greedy, off, 1).temperature, 0.6);
  EXPECT_EQ(resolve_sampling(greedy, {.repetition_penalty = 1.3}, 1).temperature, 0.0);
  EXPECT_EQ(resolve_sampling(value(read_sampling({})), {.top_k = 4}, 1).temperature, 1.0);
  EXPECT_NE(resolve_sampling(greedy, {}, 0).seed, 0u);
}

}  // namespace
}  // namespace cyb::test
