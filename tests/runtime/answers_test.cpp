// Several answers to one prompt: the bits of solo runs, shared pages, and what overflow leaves out.
#include <gtest/gtest.h>

#include <bit>

#include "runtime/generation.hpp"
#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

struct Way {
  std::string model, backend, path;
};

/// Pages that a session alone holds.
std::uint32_t session_pages(Session& session) {
  return static_cast<std::uint32_t>((value(session.tokens()).size() + 15) / 16);
}

class Answers : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    EngineOptions options;
    options.backend = GetParam().backend;
    options.path = GetParam().path;
    options.n_threads = 1;
    options.max_sequences = 5;
    engine_ = tiny_engine(GetParam().model, options);
  }
  std::shared_ptr<Engine> engine_;
};

TEST_P(Answers, EqualSoloRunsBitForBit) {
  const auto prompt = some_ids(37);  // ends inside a page
  for (const std::uint64_t seed : {7u, 8u}) {
    GenerateOptions options{.max_tokens = 30,
                            .sampling = {.temperature = 1.2, .presence_penalty = 0.3},
                            .seed = seed,
                            .logprobs = 1};
    Session session(engine_);
    const auto answers = value(generate_answers(session, prompt, options, 5));
    ASSERT_EQ(answers.size(), 5u);
    for (std::uint32_t i = 0; i < 5; ++i) {
      Session alone(engine_);
      options.row = i;
      const GenerateResult solo = value(generate(alone, prompt, options));
      EXPECT_EQ(answers[i].index, i);
      EXPECT_EQ(answers[i].seed, seed);
      EXPECT_EQ(answers[i].tokens, solo.tokens) << i;
      EXPECT_EQ(answers[i].finish_reason, solo.finish_reason) << i;
      ASSERT_EQ(answers[i].logprobs.size(), solo.logprobs.size());
      for (std::size_t t = 0; t < solo.logprobs.size(); ++t)
        EXPECT_EQ(std::bit_cast<std::uint32_t>(answers[i].logprobs[t].logprob),
                  std::bit_cast<std::uint32_t>(solo.logprobs[t].logprob));
      if (i > 0) {
        EXPECT_NE(answers[i].tokens, answers[0].tokens) << i;
      } else {
        EXPECT_EQ(value(session.tokens()), value(alone.tokens()));
      }
    }
    EXPECT_EQ(engine_->kv_pool().n_pages() - engine_->kv_pool().free_pages(),
              session_pages(session));
  }
}

/// The same where guesses are checked together, where the context shifts, and where crossing a
/// length computes the cache again.
TEST_P(Answers, EqualSoloRunsWithGuessesAndShifts) {
  const auto prompt = some_ids(37);
  GenerateOptions options{.max_tokens = 160,
                          .sampling = {.temperature = 0.9},
                          .seed = 3,
                          .ignore_stop_ids = true,
                          .overflow = Overflow::kShift};
  for (const std::uint32_t lookup : {0u, 3u}) {
    options.row = 0;
    options.speculation.lookup_tokens = lookup;
    Session session(engine_);
    const auto answers = value(generate_answers(session, prompt, options, 3));
    for (std::uint32_t i = 0; i < 3; ++i) {
      Session alone(engine_);
      options.row = i;
      const GenerateResult solo = value(generate(alone, prompt, options));
      EXPECT_EQ(solo.tokens.size(), 160u);
      EXPECT_EQ(answers[i].tokens, solo.tokens) << i << ", lookup " << lookup;
      EXPECT_EQ(answers[i].overflow.shifts, solo.overflow.shifts);
      EXPECT_EQ(answers[i].speculation.accepted, solo.speculation.accepted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, Answers,
    ::testing::Values(Way{"llama3", "cpu", "curated"}, Way{"gemma3", "cpu", "curated"},
                      Way{"qwen2", "reference", "curated"}, Way{"phi3_longrope", "cpu", "curated"},
                      Way{"llama_dynamic", "cpu", "curated"}, Way{"smollm2", "cpu", "graph"}));

TEST(AnswersPages, ThePromptIsComputedAndKeptOnce) {
  auto backend = std::make_shared<ScriptedBackend>();
  EngineOptions options;
  options.max_sequences = 4;
  TextModelOptions text;
  text.max_positions = 128;
  const auto engine = scripted_engine(text_model(text), backend, options);
  Session session(engine);
  backend->run_sizes.clear();
  std::uint32_t used = 0;
  const auto look = [&](std::uint32_t, std::string_view) {
    used = std::max(used, engine->kv_pool().n_pages() - engine->kv_pool().free_pages());
  };
  value(generate_answers(session, some_ids(70), {.max_tokens = 3}, 4, look));
  EXPECT_EQ(backend->run_sizes, (std::vector<std::uint32_t>{70, 4, 4}));
  EXPECT_EQ(backend->n_copies, 3u);  // of the page that the prompt ends in
  EXPECT_EQ(used, 4u + 4u);          // four whole pages once, the fifth four times
}

TEST(AnswersPages, MoreAnswersThanOneRunTakes) {
  EngineOptions options;
  options.max_outputs = 2;
  options.chunk_tokens = 64;
  options.backend = "cpu";
  options.n_threads = 1;
  options.max_sequences = 2;  // pages of two full contexts are enough for five short answers
  const auto engine = tiny_engine("llama3", options);
  Session session(engine);
  GenerateOptions request{.max_tokens = 9, .sampling = {.temperature = 1.0}, .seed = 4};
  const auto answers = value(generate_answers(session, some_ids(10), request, 5));
  for (std::uint32_t i = 0; i < 5; ++i) {
    Session alone(engine);
    request.row = i;
    EXPECT_EQ(answers[i].tokens, value(generate(alone, some_ids(10), request)).tokens);
  }
}

TEST(AnswersErrors, WhatCannotBeIsRefused) {
  Session session(scripted_engine(text_model({}), std::make_shared<ScriptedBackend>()));
  const std::vector<std::int32_t> prompt = {1, 2};
  EXPECT_FALSE(generate_answers(session, prompt, {}, 0).has_value());
  EXPECT_FALSE(generate_answers(session, {}, {}, 2).has_value());
  EXPECT_TRUE(value(session.tokens()).empty());
}

/// Says the length of its history, so that a test sees what was left out.
std::shared_ptr<Engine> counting_engine(std::int32_t bos, std::int64_t context) {
  auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    logits[history.size()] = 20.0f;
  };
  TextModelOptions text;
  text.max_positions = context;
  text.bos = bos;
  return scripted_engine(text_model(text), backend);
}

TEST(OverflowModes, TruncateKeepsTheBeginningAndTheEnd) {
  const auto engine = counting_engine(7, 32);
  std::vector<std::int32_t> prompt = {7};
  for (std::int32_t i = 0; i < 60; ++i) prompt.push_back(100 + i);
  Session session(engine);
  const GenerateResult got =
      value(generate(session, prompt, {.max_tokens = 5, .overflow = Overflow::kTruncate}));
  EXPECT_EQ(got.prompt_tokens, 27u);
  EXPECT_EQ(got.overflow.dropped_prompt_tokens, 34u);
  EXPECT_EQ(got.overflow.shifts, 0u);
  EXPECT_EQ(got.tokens, (std::vector<std::int32_t>{27, 28, 29, 30, 31}));
  const auto held = value(session.tokens());
  EXPECT_EQ(held[0], 7);
  EXPECT_EQ(held[1], 100 + 34);
  EXPECT_EQ(held[26], 159);
  // The same with the default, error: nothing changes.
  Session strict(engine);
  const auto refused = generate(strict, prompt, {.max_tokens = 5});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), ErrorKind::kContextOverflow);
}

TEST(OverflowModes, WhatFitsIsLeftAlone) {
  const auto engine = counting_engine(-1, 32);
  for (const Overflow mode : {Overflow::kError, Overflow::kTruncate, Overflow::kShift}) {
    for (const std::size_t n : {1u, 30u, 31u}) {
      Session session(engine);
      const GenerateResult got =
          value(generate(session, some_ids(n), {.max_tokens = 1, .overflow = mode}));
      EXPECT_EQ(got.overflow.dropped_prompt_tokens, 0u) << n;
      EXPECT_EQ(got.prompt_tokens, n);
    }
    // Exactly full: no room for a token, so what may be cut is.
    Session session(engine);
    const GenerateResult got =
        value(generate(session, some_ids(32), {.max_tokens = 1, .overflow = mode}));
    EXPECT_EQ(got.overflow.dropped_prompt_tokens, mode == Overflow::kError ? 0u : 1u);
  }
}

TEST(OverflowModes, ShiftGoesOnAsIfTheRestHadBeenThePrompt) {
  EngineOptions options;
  options.backend = "cpu";
  options.n_threads = 1;
  options.ctx_tokens = 32;
  options.max_sequences = 2;
  const auto engine = tiny_engine("llama3", options);
  for (const double temperature : {0.0, 0.9}) {
    Session session(engine);
    const GenerateOptions request{.max_tokens = 70,
                                  .sampling = {.temperature = temperature},
                                  .seed = 3,
                                  .ignore_stop_ids = true,
                                  .overflow = Overflow::kShift};
    const auto prompt = some_ids(20);
    const GenerateResult got = value(generate(session, prompt, request));
    ASSERT_EQ(got.tokens.size(), 70u);
    EXPECT_EQ(got.finish_reason, FinishReason::kLength);
    EXPECT_GT(got.overflow.shifts, 2u);
    EXPECT_EQ(got.overflow.dropped_tokens, 16u * got.overflow.shifts);
    // Token 12 fills the context; what follows is drawn after the newer half and that token.
    std::vector<std::int32_t> all = prompt;
    all.insert(all.end(), got.tokens.begin(), got.tokens.end());
    const std::vector<std::int32_t> rest(all.begin() + 16, all.begin() + 33);
    Session fresh(engine);
    CYB_ASSERT_OK(fresh.prefill(rest));
    SamplingConfig config;
    config.temperature = temperature;
    config.seed = 3;
    auto sampler = value(Sampler::create(config, 256));
    EXPECT_EQ(all[33], value(sampler.sample(value(fresh.logits()), 33))) << temperature;
  }
}

}  // namespace
}  // namespace cyb::test
