// The tiny models against transformers, on every backend and path; and the determinism that the
// program promises: equal bits for any number of threads, batch, chunk size, cold or warm.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "runtime/generation.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/far_backend.hpp"
#include "support/regime.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

std::vector<float> logits_of(Engine& engine, std::span<const std::int32_t> ids) {
  std::vector<float> out;
  const auto done =
      all_logits(engine, ids, [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
        out.insert(out.end(), rows.begin(), rows.end());
        return {};
      });
  if (!done) throw std::runtime_error(done.error().text());
  return out;
}

using Place = std::tuple<std::string, std::string, std::string>;  // model, backend, path

class Golden : public ::testing::TestWithParam<Place> {
 protected:
  std::shared_ptr<Engine> engine(std::uint32_t chunk = 512, std::uint32_t sequences = 1) const {
    EngineOptions options;
    options.max_sequences = sequences;
    options.backend = std::get<1>(GetParam());
    options.path = std::get<2>(GetParam());
    options.isa = options.backend == "cpu" ? regime_isa() : "";
    options.n_threads = regime_threads();
    options.exact = true;
    options.chunk_tokens = chunk;
    options.max_outputs = 16;
    return tiny_engine(std::get<0>(GetParam()), options);
  }
};

TEST_P(Golden, LogitsAreTransformers) {
  const TinyGolden golden = tiny_golden(std::get<0>(GetParam()));
  const auto e = engine();
  ASSERT_EQ(e->vocab_size(), golden.vocab);
  std::vector<float> got;
  for (std::uint32_t row = 0; row < golden.n_rows; ++row) {
    const auto one =
        logits_of(*e, std::span(golden.ids).subspan(row * golden.n_tokens, golden.n_tokens));
    got.insert(got.end(), one.begin(), one.end());
  }
  EXPECT_LT(error_of(got, golden.logits), 1e-5);
}

TEST_P(Golden, GreedyIsTransformers) {
  const TinyGolden golden = tiny_golden(std::get<0>(GetParam()));
  const std::size_t n_prompt = golden.n_tokens;
  Session session(engine());
  const GenerateResult got = value(generate(session, std::span(golden.greedy).first(n_prompt),
                                            {.max_tokens = 8, .ignore_stop_ids = true}));
  EXPECT_EQ(got.tokens,
            std::vector<std::int32_t>(golden.greedy.begin() + static_cast<std::ptrdiff_t>(n_prompt),
                                      golden.greedy.end()));
}

std::string place_name(const ::testing::TestParamInfo<Place>& info) {
  return std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param);
}

INSTANTIATE_TEST_SUITE_P(Tiny, Golden,
                         ::testing::Combine(::testing::ValuesIn(tiny_names()),
                                            ::testing::Values("reference", "cpu"),
                                            ::testing::Values("curated", "graph")),
                         place_name);

// Past the window and the original context, where the frequencies of some ropes depend on the
// length: the whole prompt's for each of its positions, then the length reached.
class LongText : public Golden {};

TEST_P(LongText, WholePromptsAreTransformers) {
  const LongGolden golden = long_golden(std::get<0>(GetParam()));
  const auto whole = engine(512, 3), cut = engine(7, 3);
  const std::size_t vocab = whole->vocab_size();
  for (std::size_t i = 0; i < golden.lengths.size(); ++i) {
    const auto prompt = std::span(golden.ids).first(static_cast<std::size_t>(golden.lengths[i]));
    Session session(whole), chunks(cut);
    value(session.prefill(prompt));
    value(chunks.prefill(prompt));
    const std::vector<float> got = value(session.logits());
    EXPECT_LT(error_of(got, std::span(golden.logits).subspan(i * vocab, vocab)), 1e-5)
        << golden.lengths[i] << " ids";
    EXPECT_EQ(value(chunks.logits()), got) << golden.lengths[i] << " ids in chunks";
    const std::vector<float> all = logits_of(*cut, prompt);
    EXPECT_EQ(std::vector(all.end() - static_cast<std::ptrdiff_t>(vocab), all.end()), got);
  }
}

TEST_P(LongText, CachedDecodeIsTransformers) {
  const LongGolden golden = long_golden(std::get<0>(GetParam()));
  const auto e = engine(512, 3);
  const std::size_t vocab = e->vocab_size();
  Session session(e), other(e);
  const auto prompt = std::span(golden.ids).first(golden.n_prompt);
  value(session.prefill(prompt));
  for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
    const std::vector<float> got = value(session.logits());
    EXPECT_LT(error_of(got, std::span(golden.cached).subspan(i * vocab, vocab)), 1e-5)
        << "step " << i;
    CYB_ASSERT_OK(session.append(std::span(golden.greedy).subspan(i, 1)));
  }
  const GenerateResult got = value(generate(
      other, prompt,
      {.max_tokens = static_cast<std::uint32_t>(golden.greedy.size()), .ignore_stop_ids = true}));
  EXPECT_EQ(got.tokens, golden.greedy);
}

// A prompt that the cache holds a part of gives the bits of a cold run, also where the part was
// rotated for another length.
TEST_P(LongText, WarmIsCold) {
  const LongGolden golden = long_golden(std::get<0>(GetParam()));
  const auto e = engine(512, 3);
  const auto prompt = [&](std::size_t n) { return std::span(golden.ids).first(n); };
  Session warm(e);
  for (const std::size_t n : {20u, 40u, 30u, 31u, 64u, 63u, 12u}) {
    Session cold(e);
    value(warm.prefill(prompt(n)));
    value(cold.prefill(prompt(n)));
    EXPECT_EQ(value(warm.logits()), value(cold.logits())) << n << " ids";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, LongText,
                         ::testing::Combine(::testing::ValuesIn(long_names()),
                                            ::testing::Values("reference", "cpu"),
                                            ::testing::Values("curated", "graph")),
                         place_name);

/// Where determinism is asked for; the default 8-bit activations on cpu count as much as exact
/// ones.
struct Bits {
  std::string model, backend, path;
  bool exact;
};

class Determinism : public ::testing::TestWithParam<Bits> {
 protected:
  std::shared_ptr<Engine> engine(unsigned threads, std::uint32_t chunk,
                                 std::uint32_t sequences = 1) const {
    EngineOptions options;
    options.backend = GetParam().backend;
    options.path = GetParam().path;
    options.exact = GetParam().exact;
    options.isa = options.backend == "cpu" ? regime_isa() : "";
    options.n_threads = threads;
    options.chunk_tokens = chunk;
    options.max_outputs = 17;
    options.max_sequences = sequences;
    return tiny_engine(GetParam().model, options);
  }
  const std::vector<std::int32_t> ids_ = some_ids(70);
};

TEST_P(Determinism, ThreadsAndChunks) {
  const std::vector<float> expected = logits_of(*engine(1, 512), ids_);
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const std::uint32_t chunk : {1u, 3u, 16u, 17u, 512u}) {
      if (chunk == 1 && threads == 3) continue;
      EXPECT_EQ(logits_of(*engine(threads, chunk), ids_), expected)
          << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(Determinism, ColdAndWarm) {
  const auto e = engine(2, 16, 2);
  Session cold(e), warm(e);
  value(cold.prefill(ids_));
  const std::vector<float> expected = value(cold.logits());
  auto other = ids_;
  other[41] ^= 3;
  value(warm.prefill(other));
  EXPECT_EQ(value(warm.prefill(ids_)).n_reused, 41u);
  EXPECT_EQ(value(warm.logits()), expected);
  // Token by token over a rolled-back tail.
  CYB_ASSERT_OK(warm.truncate(33));
  for (std::size_t i = 33; i < ids_.size(); ++i)
    CYB_ASSERT_OK(warm.append(std::span(ids_).subspan(i, 1)));
  EXPECT_EQ(value(warm.logits()), expected);
}

/// As many steps together as one run takes.
void run_in_groups(Engine& engine, std::span<const SequenceStep> steps) {
  while (!steps.empty()) {
    std::size_t n = 0, rows = 0;
    while (n < steps.size() && rows + steps[n].ids.size() <= engine.chunk_tokens()) {
      rows += steps[n++].ids.size();
    }
    ASSERT_GT(n, 0u);
    CYB_ASSERT_OK(engine.step(steps.first(n), {}));
    steps = steps.subspan(n);
  }
}

TEST_P(Determinism, AloneAndInBatches) {
  const auto e = engine(2, 512, 17);
  std::vector<std::vector<std::int32_t>> prompts;
  std::vector<std::vector<float>> expected;  // after the prompt, then after one decoded token
  for (std::size_t i = 0; i < 16; ++i) {
    prompts.push_back(some_ids(1 + 5 * i % 37, static_cast<std::int32_t>(3 * i)));
    auto longer = prompts.back();
    longer.push_back(static_cast<std::int32_t>(11 + i));
    Session session(e);
    value(session.prefill(longer));
    expected.push_back(value(session.logits()));
  }
  for (const std::size_t batch : {1u, 2u, 3u, 7u, 16u}) {
    std::vector<Sequence> sequences;
    std::vector<SequenceStep> steps;
    std::vector<std::int32_t> next;
    for (std::size_t i = 0; i < batch; ++i) sequences.push_back(e->new_sequence());
    for (std::size_t i = 0; i < batch; ++i) {
      next.push_back(static_cast<std::int32_t>(11 + i));
      steps.push_back({&sequences[i], prompts[i], LogitRows::kNone});
    }
    run_in_groups(*e, steps);
    for (std::size_t i = 0; i < batch; ++i)
      steps[i] = {&sequences[i], {&next[i], 1}, LogitRows::kLast};
    // The neighbour of decode steps may be a prefill.
    Sequence guest = e->new_sequence();
    const auto guest_ids = some_ids(std::min<std::size_t>(50, e->chunk_tokens() - batch), 1);
    steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(batch / 2),
                 {&guest, guest_ids, LogitRows::kNone});
    std::vector<std::vector<float>> rows;
    CYB_ASSERT_OK(e->step(steps, [&](std::size_t, std::span<const float> row) {
      rows.emplace_back(row.begin(), row.end());
    }));
    ASSERT_EQ(rows.size(), batch);
    for (std::size_t i = 0; i < batch; ++i) EXPECT_EQ(rows[i], expected[i]) << batch << " " << i;
  }
}

TEST_P(Determinism, SampledTokensAreTheSame) {
  std::vector<std::int32_t> expected;
  for (const unsigned threads : {1u, 2u, 3u}) {
    Session session(engine(threads, 16));
    const GenerateOptions options{
        .max_tokens = 24, .sampling = {.temperature = 0.8}, .seed = 5, .ignore_stop_ids = true};
    const auto tokens = value(generate(session, std::span(ids_).first(20), options)).tokens;
    if (expected.empty()) expected = tokens;
    EXPECT_EQ(tokens, expected);
  }
}

std::string bits_name(const ::testing::TestParamInfo<Bits>& info) {
  return info.param.model + "_" + info.param.backend + "_" + info.param.path +
         (info.param.exact ? "_exact" : "");
}

INSTANTIATE_TEST_SUITE_P(Tiny, Determinism,
                         ::testing::Values(Bits{"qwen3", "reference", "curated", false},
                                           Bits{"gemma3", "reference", "graph", false},
                                           Bits{"llama3", "cpu", "curated", false},
                                           Bits{"mistral", "cpu", "curated", true},
                                           Bits{"gemma3", "cpu", "curated", false},
                                           Bits{"smollm2", "cpu", "graph", true}),
                         bits_name);

// Curated and graph share one description of the family: here they must agree within class F.
TEST(Paths, CuratedIsGraph) {
  for (const std::string& name : tiny_names()) {
    for (const char* backend : {"reference", "cpu"}) {
      EngineOptions options;
      options.backend = backend;
      options.exact = true;
      options.path = "curated";
      const auto curated = logits_of(*tiny_engine(name, options), some_ids(40));
      options.path = "graph";
      const auto graph = logits_of(*tiny_engine(name, options), some_ids(40));
      EXPECT_LT(error_of(curated, graph), kCuratedGraphF32) << name << " " << backend;
    }
  }
}

// Memory that the host may not touch between submit and sync: nothing above the backends may assume
// otherwise.
TEST(Far, RunsEndToEndAndGivesTheReferencesBits) {
  for (const char* path : {"curated", "graph"}) {
    EngineOptions options;
    options.path = path;
    options.backend = "reference";
    const auto near = tiny_engine("gemma3", options);
    const auto far = value(Engine::load(tiny_model("gemma3"), value(make_far_backend()), options));
    const auto ids = some_ids(40);
    EXPECT_EQ(logits_of(*far, ids), logits_of(*near, ids)) << path;
    Session a(near), b(far);
    const GenerateOptions sampled{
        .max_tokens = 20, .sampling = {.temperature = 0.9}, .seed = 3, .ignore_stop_ids = true};
    EXPECT_EQ(value(generate(a, ids, sampled)).tokens, value(generate(b, ids, sampled)).tokens)
        << path;
  }
}

}  // namespace
}  // namespace cyb::test
