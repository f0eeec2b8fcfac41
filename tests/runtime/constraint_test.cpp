// Answers under a grammar: what is valid, where they may end, log-probabilities, several answers,
// speculation; over a backend whose logits are a hash of the text.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/generation.hpp"
#include "support/engine_support.hpp"
#include "text/grammar/grammar.hpp"
#include "text/tokenizer.hpp"

namespace cyb::test {
namespace {

constexpr std::int32_t kEos = 256;
const std::vector<std::int32_t> kPrompt = {'a', 'b'};

std::shared_ptr<const Grammar> schema(const std::string& text) {
  return value(Grammar::from_json_schema(text));
}

const char* const kPerson =
    R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5},
        "age": {"type": "integer", "minimum": 0, "maximum": 120}, "ok": {"type": "boolean"}},
        "required": ["name", "age"], "additionalProperties": false})";

/// `script` empty: logits are a hash of the history, the same for every run.
std::shared_ptr<Engine> engine_with(Script script = {}, EngineOptions engine = {}) {
  TextModelOptions options;
  options.tokens = {{"<end>", TokenType::kControl}, {"\":"}, {"{\""}, {"true"}, {"12"}, {"}}"}};
  options.eos = {kEos};
  return scripted_engine(text_model(options), std::make_shared<ScriptedBackend>(std::move(script)),
                         engine);
}

TEST(Constraint, EveryAnswerThatStopsIsValid) {
  const auto engine = engine_with();
  const auto grammar = schema(kPerson);
  std::size_t n_stopped = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double temperature : {0.0, 1.0, 3.0}) {
      GenerateOptions options{.max_tokens = 60, .seed = seed, .constraint = grammar};
      options.sampling.temperature = temperature;
      if (seed % 3 == 1) options.sampling.top_p = 0.9;
      if (seed % 3 == 2) options.sampling.presence_penalty = 0.5;
      Session session(engine);
      const GenerateResult got = value(generate(session, kPrompt, options));
      if (got.finish_reason != FinishReason::kStop) continue;
      ++n_stopped;
      EXPECT_TRUE(grammar->matches(got.text)) << got.text;
      EXPECT_TRUE(nlohmann::json::accept(got.text)) << got.text;
    }
  }
  EXPECT_GT(n_stopped, 60u);
}

TEST(Constraint, EndsAreOnlyWhereTheTextIsComplete) {
  // The model wants to end at once, and then always: it may after the first digit.
  const auto engine = engine_with(scripted_answer(2, {kEos}));
  Session session(engine);
  const GenerateResult got =
      value(generate(session, kPrompt, {.constraint = value(Grammar::from_regex("[7-9]+x?"))}));
  EXPECT_EQ(got.text, "7");
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
}

TEST(Constraint, NothingMayFollowSoTheAnswerEnds) {
  // The model never wants to end.
  const auto engine = engine_with(scripted_answer(2, {'x'}));
  Session session(engine);
  const GenerateResult got =
      value(generate(session, kPrompt, {.constraint = value(Grammar::from_regex("x{3}"))}));
  EXPECT_EQ(got.text, "xxx");
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
  const GenerateResult longer = value(generate(
      session, kPrompt, {.max_tokens = 5, .constraint = value(Grammar::from_regex("x*"))}));
  EXPECT_EQ(longer.text, "xxxxx");
  EXPECT_EQ(longer.finish_reason, FinishReason::kLength);
}

TEST(Constraint, StopTextsDoNotCut) {
  const auto engine = engine_with(scripted_answer(2, {'x'}));
  Session session(engine);
  const GenerateResult got = value(generate(
      session, kPrompt, {.stop = {"xx"}, .constraint = value(Grammar::from_regex("x{3}"))}));
  EXPECT_EQ(got.text, "xxx");
}

TEST(Constraint, LogprobsAreThoseOfTheRawDistribution) {
  const auto engine = engine_with(scripted_answer(2, {'q'}));
  Session session(engine);
  const GenerateResult got = value(
      generate(session, kPrompt, {.logprobs = 1, .constraint = value(Grammar::from_regex("z"))}));
  ASSERT_EQ(got.logprobs.size(), 1u);
  EXPECT_EQ(got.logprobs[0].id, 'z');
  ASSERT_EQ(got.logprobs[0].top.size(), 1u);
  EXPECT_EQ(got.logprobs[0].top[0].id, 'q');  // what the model wanted
  EXPECT_LT(got.logprobs[0].logprob, got.logprobs[0].top[0].logprob);
}

TEST(Constraint, SeveralAnswersAreThoseOfSingleRuns) {
  EngineOptions engine_options;
  engine_options.max_sequences = 4;
  const auto engine = engine_with({}, engine_options);
  GenerateOptions options{.max_tokens = 40, .seed = 9, .constraint = schema(kPerson)};
  options.sampling.temperature = 1.5;
  Session session(engine);
  const auto all = value(generate_answers(session, kPrompt, options, 4));
  for (std::uint32_t row = 0; row < 4; ++row) {
    Session alone(engine);
    GenerateOptions single = options;
    single.row = row;
    EXPECT_EQ(all[row].tokens, value(generate(alone, kPrompt, single)).tokens) << row;
  }
}

TEST(Constraint, SpeculationChangesNothing) {
  EngineOptions engine_options;
  engine_options.max_outputs = 9;
  const auto engine = engine_with({}, engine_options);
  const auto draft = engine_with();
  const auto grammar = value(Grammar::from_gbnf("root ::= (\"ab\" [cd] \" \")* \"end\""));
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    GenerateOptions options{.max_tokens = 60, .seed = seed, .constraint = grammar};
    options.sampling.temperature = 1.0;
    Session plain(engine);
    const GenerateResult expected = value(generate(plain, kPrompt, options));
    for (const bool lookup : {true, false}) {
      options.speculation = {};
      if (lookup) options.speculation.lookup_tokens = 6;
      if (!lookup) options.speculation.draft = draft;
      if (!lookup) options.speculation.draft_tokens = 4;
      Session session(engine);
      const GenerateResult got = value(generate(session, kPrompt, options));
      EXPECT_EQ(got.tokens, expected.tokens);
      EXPECT_EQ(got.finish_reason, expected.finish_reason);
      accepted += got.speculation.accepted;
    }
  }
  EXPECT_GT(accepted, 0u);
}

TEST(Constraint, WhatCannotBeIsRefused) {
  const auto engine = engine_with();
  Session session(engine);
  const auto refused = [&](GenerateOptions options, const char* part) {
    const auto got = generate(session, kPrompt, options);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().kind(), ErrorKind::kInvalidInput);
    EXPECT_NE(got.error().text().find(part), std::string::npos) << got.error().text();
  };
  refused({.ignore_stop_ids = true, .constraint = value(Grammar::from_regex("a"))},
          "cannot be ignored");
}

}  // namespace
}  // namespace cyb::test
