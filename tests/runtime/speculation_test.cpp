// Speculation changes no token and no log-probability: plain, with prompt lookup and with draft
// models, greedy and sampled, over models, backends and seeds.
#include "runtime/speculation.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

struct Way {
  std::string model, backend, path;
};

std::string way_name(const ::testing::TestParamInfo<Way>& info) {
  return info.param.model + "_" + info.param.backend + "_" + info.param.path;
}

std::shared_ptr<Engine> engine_of(const std::string& model, const std::string& backend,
                                  const std::string& path) {
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.n_threads = 1;
  options.max_outputs = 9;
  return tiny_engine(model, options);
}

/// A prompt that says things twice, so that lookup finds something.
std::vector<std::int32_t> repeating_prompt() {
  std::vector<std::int32_t> ids = some_ids(12);
  const std::vector<std::int32_t> once = ids;
  for (int i = 0; i < 2; ++i) ids.insert(ids.end(), once.begin(), once.end());
  return ids;
}

class Speculation : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    engine_ = engine_of(GetParam().model, GetParam().backend, GetParam().path);
  }
  GenerateResult run(const GenerateOptions& options, std::vector<std::int32_t>* held = nullptr) {
    Session session(engine_);
    GenerateResult result = value(generate(session, prompt_, options));
    if (held != nullptr) *held = value(session.tokens());
    return result;
  }
  void expect_equal(GenerateOptions options, const SpeculationOptions& speculation,
                    std::uint64_t* accepted = nullptr) {
    std::vector<std::int32_t> held, held_plain;
    const GenerateResult plain = run(options, &held_plain);
    options.speculation = speculation;
    const GenerateResult ahead = run(options, &held);
    EXPECT_EQ(ahead.tokens, plain.tokens);
    EXPECT_EQ(ahead.finish_reason, plain.finish_reason);
    EXPECT_EQ(held, held_plain);
    ASSERT_EQ(ahead.logprobs.size(), plain.logprobs.size());
    for (std::size_t i = 0; i < plain.logprobs.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(ahead.logprobs[i].logprob),
                std::bit_cast<std::uint32_t>(plain.logprobs[i].logprob))
          << i;
    }
    EXPECT_LE(ahead.speculation.accepted, ahead.speculation.drafted);
    if (accepted != nullptr) *accepted += ahead.speculation.accepted;
  }

  std::shared_ptr<Engine> engine_;
  std::vector<std::int32_t> prompt_ = repeating_prompt();
};

std::vector<GenerateOptions> requests() {
  std::vector<GenerateOptions> out;
  out.push_back({.max_tokens = 40, .logprobs = 2, .ignore_stop_ids = true});
  out.push_back({.max_tokens = 25, .sampling = {.repetition_penalty = 1.4}, .logprobs = 0});
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    out.push_back({.max_tokens = 40,
                   .sampling = {.temperature = seed == 3 ? 0.05 : 0.8},
                   .seed = seed,
                   .logprobs = 1,
                   .ignore_stop_ids = true});
    out.push_back({.max_tokens = 30,
                   .sampling = {.temperature = 1.1,
                                .top_p = 0.9,
                                .presence_penalty = 0.5,
                                .dry_multiplier = 0.8,
                                .mirostat_tau = 3.0},
                   .seed = seed,
                   .ignore_stop_ids = true});
  }
  return out;
}

TEST_P(Speculation, LookupChangesNothing) {
  std::uint64_t accepted = 0;
  for (const GenerateOptions& options : requests()) {
    for (const std::uint32_t count : {1u, 3u, 8u})
      expect_equal(options, {.lookup_tokens = count}, &accepted);
  }
  EXPECT_GT(accepted, 0u);
}

TEST_P(Speculation, ADraftModelChangesNothing) {
  // One that is often right and one that is nearly always wrong.
  const auto same = engine_of(GetParam().model, "reference", "curated");
  const auto other = engine_of(GetParam().model == "llama2" ? "qwen2" : "llama2", "cpu", "curated");
  std::uint64_t accepted = 0, lucky = 0;
  for (const GenerateOptions& options : requests()) {
    expect_equal(options, {.draft = same, .draft_tokens = 4}, &accepted);
    expect_equal(options, {.draft = other, .draft_tokens = 8}, &lucky);
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_LT(lucky, accepted);
}

TEST_P(Speculation, AtTheEndOfTheContext) {
  EngineOptions options;
  options.backend = GetParam().backend;
  options.path = GetParam().path;
  options.max_outputs = 9;
  options.n_threads = 1;
  options.ctx_tokens = 48;
  engine_ = tiny_engine(GetParam().model, options);
  for (const Overflow overflow : {Overflow::kError, Overflow::kShift}) {
    GenerateOptions request{.max_tokens = overflow == Overflow::kShift ? 60u : 0u,
                            .ignore_stop_ids = true,
                            .overflow = overflow};
    expect_equal(request, {.lookup_tokens = 8});
    expect_equal(request,
                 {.draft = engine_of(GetParam().model, "cpu", "curated"), .draft_tokens = 5});
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Speculation,
                         ::testing::Values(Way{"llama3", "cpu", "curated"},
                                           Way{"gemma3", "cpu", "curated"},
                                           Way{"qwen3", "reference", "curated"},
                                           Way{"mistral", "cpu", "curated"},
                                           Way{"llama2", "cpu", "graph"}),
                         way_name);

TEST(Lookup, TheLatestLongestMatchCounts) {
  const std::vector<std::int32_t> ids = {1, 2, 3, 9, 1, 2, 3, 8, 7, 2, 3, 6, 1, 2, 3};
  const auto found = lookup_tokens(ids, 3);
  EXPECT_EQ(std::vector<std::int32_t>(found.begin(), found.end()),
            (std::vector<std::int32_t>{8, 7, 2}));
  EXPECT_EQ(lookup_tokens(ids, 100).size(), 8u);
  EXPECT_TRUE(lookup_tokens(ids, 0).empty());
  EXPECT_TRUE(lookup_tokens(std::vector<std::int32_t>{1, 2, 3}, 4).empty());
  EXPECT_TRUE(lookup_tokens(std::vector<std::int32_t>{}, 4).empty());
  EXPECT_EQ(lookup_tokens(std::vector<std::int32_t>{5, 5}, 4).size(), 1u);
}

TEST(SpeculationErrors, WhatCannotBeIsRefused) {
  const auto engine = engine_of("llama3", "cpu", "curated");
  Session session(engine);
  const auto refused = [&](const SpeculationOptions& speculation) {
    const auto result =
        generate(session, some_ids(5), {.max_tokens = 3, .speculation = speculation});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidInput) << result.error().text();
  };
  refused({.lookup_tokens = 9});  // more than the engine's logit rows
  refused({.lookup_tokens = 2, .draft = engine, .draft_tokens = 2});
  TextModelOptions text;
  refused({.draft = scripted_engine(text_model(text), std::make_shared<ScriptedBackend>()),
           .draft_tokens = 2});  // a model with a tokenizer beside one of ids
  EXPECT_TRUE(value(session.tokens()).empty());
}

TEST(SpeculationErrors, ADraftOfAnotherTokenizerIsRefused) {
  TextModelOptions one, two;
  one.tokens = {{"abc"}};
  two.tokens = {{"abd"}};
  Session session(scripted_engine(text_model(one), std::make_shared<ScriptedBackend>()));
  const auto draft = scripted_engine(text_model(two), std::make_shared<ScriptedBackend>());
  const auto result =
      generate(session, std::vector<std::int32_t>{1, 2},
               {.max_tokens = 3, .speculation = {.draft = draft, .draft_tokens = 2}});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().text().find("another vocabulary"), std::string::npos);
}

TEST(SpeculationText, StopsInsideGuessesEndTheAnswer) {
  // The answer repeats "abcd"; the stop lies in the middle of what lookup guesses.
  TextModelOptions text;
  auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t> history, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    logits['a' + static_cast<std::size_t>(history.size() % 7)] = 20.0f;
  };
  EngineOptions options;
  options.max_outputs = 9;
  const auto engine = scripted_engine(text_model(text), backend, options);
  const std::vector<std::int32_t> prompt = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'a', 'b'};
  for (const std::string stop : {"e", "fg", "ga", "gabcdefgab", "never"}) {
    Session plain_session(engine), session(engine);
    GenerateOptions request{.max_tokens = 30, .stop = {stop}};
    const GenerateResult plain = value(generate(plain_session, prompt, request));
    request.speculation.lookup_tokens = 8;
    std::string streamed;
    const GenerateResult ahead = value(
        generate(session, prompt, request, [&](std::string_view piece) { streamed += piece; }));
    EXPECT_EQ(ahead.text, plain.text) << stop;
    EXPECT_EQ(streamed, plain.text);
    EXPECT_EQ(ahead.tokens, plain.tokens);
    EXPECT_EQ(ahead.finish_reason, plain.finish_reason);
    EXPECT_EQ(value(session.tokens()), value(plain_session.tokens())) << stop;
    if (stop == "never") {
      EXPECT_GT(ahead.speculation.accepted, 20u);
    }
  }
}

}  // namespace
}  // namespace cyb::test
