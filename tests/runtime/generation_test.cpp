// Generation over a backend that says what a test tells it to: stops, streaming, seeds, limits,
// cancellation.
#include "runtime/generation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/utf8.hpp"
#include "support/engine_support.hpp"
#include "text/tokenizer.hpp"

namespace cyb::test {
namespace {

constexpr std::int32_t kEos = 256;

/// An engine whose answer to the prompt "ab" is `answer`; `tokens` get ids from 257 on (256 ends an
/// answer).
std::shared_ptr<Engine> answering(std::vector<TextToken> tokens, std::vector<std::int32_t> answer,
                                  TextModelOptions options = {}) {
  options.tokens = std::move(tokens);
  options.tokens.insert(options.tokens.begin(), {"<end>", TokenType::kControl});
  options.eos = {kEos};
  auto backend = std::make_shared<ScriptedBackend>(scripted_answer(2, std::move(answer)));
  return scripted_engine(text_model(options), backend);
}

const std::vector<std::int32_t> kPrompt = {'a', 'b'};

struct Streamed {
  GenerateResult result;
  std::vector<std::string> pieces;
  std::string joined() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Streamed run(const std::shared_ptr<Engine>& engine, GenerateOptions options = {}) {
  Session session(engine);
  Streamed out;
  out.result = value(generate(session, kPrompt, options,
                              [&](std::string_view text) { out.pieces.emplace_back(text); }));
  EXPECT_EQ(out.joined(), out.result.text);
  return out;
}

TEST(Generation, StopsAtAnEosId) {
  const Streamed got = run(answering({{"DEF"}}, {257, 'x', kEos, 'y'}));
  EXPECT_EQ(got.result.text, "DEFx");
  EXPECT_EQ(got.result.tokens, (std::vector<std::int32_t>{257, 'x'}));
  EXPECT_EQ(got.result.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got.result.prompt_tokens, 2u);
  EXPECT_EQ(got.result.path, "curated");
  EXPECT_EQ(got.result.backend, "scripted");
  EXPECT_TRUE(got.result.model_id.starts_with("blake3:"));
}

TEST(Generation, AStopStringOverSeveralTokensIsNeverSeen) {
  const std::vector<TextToken> tokens = {{"DEF"}, {"HI"}};
  const Streamed got = run(answering(tokens, {257, 'G', 258, 'J', kEos}), {.stop = {"DEFGHIJ"}});
  EXPECT_EQ(got.result.text, "");
  EXPECT_TRUE(got.pieces.empty());
  EXPECT_EQ(got.result.finish_reason, FinishReason::kStop);
}

// Every way to cut "x" + stop + "yz" into tokens, with the stop in front of, over and behind every
// boundary.
TEST(Generation, EverySplitOfAStopString) {
  const std::string stop = "DEFGHIJ", text = "x" + stop + "yz";
  TextModelOptions options;
  options.tokens = {{"<end>", TokenType::kControl}};
  options.eos = {kEos};
  std::map<std::string, std::int32_t> ids;  // all substrings
  for (std::size_t at = 0; at < text.size(); ++at) {
    ids[text.substr(at, 1)] = text[at];
    for (std::size_t size = 2; at + size <= text.size(); ++size) {
      ids[text.substr(at, size)] = static_cast<std::int32_t>(256 + options.tokens.size());
      options.tokens.push_back({text.substr(at, size)});
    }
  }
  const auto backend = std::make_shared<ScriptedBackend>();
  const auto engine = scripted_engine(text_model(options), backend);
  for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    std::vector<std::int32_t> answer;
    std::size_t begin = 0;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      if (end < text.size() && (cuts >> (end - 1) & 1) == 0) continue;
      answer.push_back(ids.at(text.substr(begin, end - begin)));
      begin = end;
    }
    answer.push_back(kEos);
    backend->script = scripted_answer(kPrompt.size(), answer);
    const Streamed got = run(engine, {.stop = {stop}});
    EXPECT_EQ(got.result.text, "x") << cuts;
    EXPECT_EQ(got.result.finish_reason, FinishReason::kStop) << cuts;
  }
}

TEST(Generation, AStopStringThatDoesNotComeIsReleased) {
  const Streamed got = run(answering({{"DEFG"}}, {257, 'H', kEos}), {.stop = {"DEFGHIJ"}});
  EXPECT_EQ(got.result.text, "DEFGH");
  EXPECT_EQ(got.result.finish_reason, FinishReason::kStop);
}

TEST(Generation, AStopStringThatIsAControlTokenStopsThere) {
  const Streamed got = run(answering({{"<turn>", TokenType::kControl}}, {'x', 257, 'y', kEos}),
                           {.stop = {"<turn>"}});
  EXPECT_EQ(got.result.text, "x");
  EXPECT_EQ(got.result.tokens, (std::vector<std::int32_t>{'x'}));
}

TEST(Generation, OnlyWholeCharactersAreStreamed) {
  const std::string text = "👨‍👩‍👧‍👦漢é!";
  for (std::size_t size = 1; size <= 4; ++size) {
    std::vector<TextToken> tokens;
    std::vector<std::int32_t> answer;
    for (std::size_t at = 0; at < text.size(); at += size) {
      const std::string part = text.substr(at, size);
      if (part.size() == 1) {
        answer.push_back(static_cast<std::uint8_t>(part[0]));
        continue;
      }
      std::size_t i = 0;
      while (i < tokens.size() && tokens[i].text != part) ++i;
      if (i == tokens.size()) tokens.push_back({part});
      answer.push_back(static_cast<std::int32_t>(257 + i));
    }
    answer.push_back(kEos);
    const Streamed got = run(answering(tokens, answer));
    EXPECT_EQ(got.result.text, text) << size;
    for (const std::string& piece : got.pieces) {
      EXPECT_EQ(utf8_find_invalid(piece), std::string::npos) << size;
    }
  }
}

TEST(Generation, AnAnswerCutInsideACharacterEndsWithAReplacement) {
  const Streamed got = run(answering({}, {'x', 0xE6, 0xBC, kEos}));
  EXPECT_EQ(got.result.text, "x\uFFFD");
}

TEST(Generation, MaxTokensEndsWithLength) {
  const Streamed got = run(answering({}, {'x', 'y', 'z', kEos}), {.max_tokens = 2});
  EXPECT_EQ(got.result.text, "xy");
  EXPECT_EQ(got.result.finish_reason, FinishReason::kLength);
}

TEST(Generation, HeldBackTextComesOutAtTheEnd) {
  const Streamed got =
      run(answering({}, {'x', 'D', 'E', kEos}), {.max_tokens = 3, .stop = {"DEF"}});
  EXPECT_EQ(got.result.text, "xDE");
}

TEST(Generation, AFullContextEndsWithLength) {
  TextModelOptions options;
  options.max_positions = 10;
  const Streamed got = run(answering({}, {'x'}, options));
  EXPECT_EQ(got.result.text, "xxxxxxxx");
  EXPECT_EQ(got.result.finish_reason, FinishReason::kLength);
  const Streamed more = run(answering({}, {'x'}, options), {.max_tokens = 100});
  EXPECT_EQ(more.result.tokens.size(), 8u);
  EXPECT_EQ(more.result.finish_reason, FinishReason::kLength);
}

TEST(Generation, APromptLongerThanTheContextIsAnError) {
  TextModelOptions options;
  options.max_positions = 10;
  Session session(answering({}, {'x'}, options));
  CYB_EXPECT_ERROR(generate(session, some_ids(11), {}),
                   "context overflow: position 11 reaches the limit 10");
  CYB_EXPECT_ERROR(generate(session, std::vector<std::int32_t>{}, {}), "input: empty prompt");
}

TEST(Generation, CancellationIsAResultAndTheSessionGoesOn) {
  const auto engine = answering({}, {'a', 'b', 'c', 'd', kEos});
  Session session(engine);
  std::stop_source source;
  const auto stop_at_c = [&](std::string_view text) {
    if (text == "c") source.request_stop();
  };
  const GenerateResult cut =
      value(generate(session, kPrompt, {.cancel = source.get_token()}, stop_at_c));
  EXPECT_EQ(cut.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(cut.text, "abc");
  EXPECT_EQ(value(session.tokens()).size(), 4u);  // the prompt, a, b: c was sampled, not run
  const GenerateResult again = value(generate(session, kPrompt, {}));
  EXPECT_EQ(again.text, "abcd");
  EXPECT_EQ(again.reused_tokens, 1u);
}

TEST(Generation, CancelledBeforeTheFirstToken) {
  Session session(answering({}, {'a', kEos}));
  std::stop_source source;
  source.request_stop();
  const GenerateResult cut = value(generate(session, kPrompt, {.cancel = source.get_token()}));
  EXPECT_EQ(cut.finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(cut.tokens.empty());
}

TEST(Generation, AnErrorInTheMiddleEndsTheAnswer) {
  auto backend = std::make_shared<ScriptedBackend>(scripted_answer(2, {'x'}));
  backend->script.before_run = [](const StepParams& params) -> Result<void> {
    if (params.positions[0] == 5) return fail(internal_error("told to"));
    return {};
  };
  Session session(scripted_engine(text_model({}), backend));
  const auto result = generate(session, kPrompt, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kInternal);
  EXPECT_EQ(value(session.tokens()).size(), 5u);
}

/// A flat distribution: what is drawn depends on the random numbers only.
std::shared_ptr<Engine> flat_engine(ConfigTable sampling = {}) {
  auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t>, std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
  };
  TextModelOptions options;
  options.sampling = std::move(sampling);
  return scripted_engine(text_model(options), backend);
}

TEST(Generation, SeedsDecide) {
  const auto engine = flat_engine();
  const SamplingOverrides warm{.temperature = 0.8};
  const auto with = [&](std::uint64_t seed) {
    return run(engine, {.max_tokens = 12, .sampling = warm, .seed = seed}).result;
  };
  EXPECT_EQ(with(42).tokens, with(42).tokens);
  EXPECT_NE(with(42).tokens, with(43).tokens);
  EXPECT_EQ(with(42).seed, 42u);
  const GenerateResult one = with(0), two = with(0);
  EXPECT_NE(one.seed, two.seed);
  EXPECT_NE(one.tokens, two.tokens);
  EXPECT_EQ(with(one.seed).tokens, one.tokens);
}

TEST(Generation, GreedyUnlessAsked) {
  const auto engine = flat_engine();
  const std::vector<std::int32_t> zeros(5, 0);
  EXPECT_EQ(run(engine, {.max_tokens = 5}).result.tokens, zeros);
  EXPECT_NE(run(engine, {.max_tokens = 5, .sampling = {.top_k = 50}}).result.tokens, zeros);
  EXPECT_EQ(
      run(engine, {.max_tokens = 5, .sampling = {.temperature = 0, .top_k = 50}}).result.tokens,
      zeros);
}

TEST(Generation, TheConfigsSeedAndMethodHold) {
  ConfigTable sampling;
  sampling.set("temperature", 1.0);
  sampling.set("seed", 7);
  const auto engine = flat_engine(sampling);
  const GenerateResult one = run(engine, {.max_tokens = 8}).result;
  EXPECT_EQ(one.seed, 7u);
  EXPECT_EQ(one.tokens, run(engine, {.max_tokens = 8}).result.tokens);
  EXPECT_NE(one.tokens, std::vector<std::int32_t>(8, 0));
}

TEST(Generation, RepetitionPenaltyCountsPromptAndAnswer) {
  // All logits 1: the penalty lowers what was seen, so greedy takes the lowest id not seen yet.
  auto backend = std::make_shared<ScriptedBackend>();
  backend->script.row = [](std::span<const std::int32_t>, std::span<float> logits) {
    std::ranges::fill(logits, 1.0f);
  };
  Session session(scripted_engine(text_model({}), backend));
  const GenerateResult got =
      value(generate(session, std::vector<std::int32_t>{0, 2},
                     {.max_tokens = 4, .sampling = {.repetition_penalty = 2.0}}));
  EXPECT_EQ(got.tokens, (std::vector<std::int32_t>{1, 3, 4, 5}));
}

TEST(Generation, LogprobsAreOfTheRawDistribution) {
  const Streamed got = run(answering({}, {'x', 'y', kEos}),
                           {.sampling = {.temperature = 5.0}, .seed = 1, .logprobs = 3});
  ASSERT_EQ(got.result.logprobs.size(), got.result.tokens.size());
  for (const TokenReport& report : got.result.logprobs) {
    ASSERT_EQ(report.top.size(), 3u);
    const double expected = 20.0 - std::log(std::exp(20.0) + 256.0);
    EXPECT_NEAR(report.top[0].logprob, expected, 1e-6);
    EXPECT_NEAR(report.top[1].logprob, expected - 20.0, 1e-4);
  }
}

TEST(Generation, BadSamplingValuesAreRefusedBeforeAnythingRuns) {
  const auto engine = answering({}, {'x', kEos});
  Session session(engine);
  const auto result = generate(session, kPrompt, {.sampling = {.top_p = 1.5}});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidConfig);
  EXPECT_TRUE(value(session.tokens()).empty());
}

TEST(Generation, AModelOfIdsAnswersWithIds) {
  auto backend = std::make_shared<ScriptedBackend>(scripted_answer(2, {5, 6, 2}));
  Session session(scripted_engine(tiny_model("llama2"), backend));
  const GenerateResult got = value(generate(session, std::vector<std::int32_t>{9, 8}, {}));
  EXPECT_EQ(got.tokens, (std::vector<std::int32_t>{5, 6}));
  EXPECT_EQ(got.text, "");
  EXPECT_EQ(got.finish_reason, FinishReason::kStop);
}

TEST(Generation, BusyWhileAnotherRuns) {
  const auto engine = answering({}, {'x', kEos});
  Session session(engine);
  const auto inner = [&](std::string_view) {
    CYB_EXPECT_ERROR(generate(session, kPrompt, {}), "session is in use by another run");
  };
  CYB_EXPECT_OK(generate(session, kPrompt, {}, inner));
}

TEST(Generation, TimingsAreFilledIn) {
  const GenerateTimings t = run(answering({}, {'x', 'y', 'z', kEos})).result.timings;
  EXPECT_GT(t.load_ms, 0);
  EXPECT_GT(t.prefill_ms, 0);
  EXPECT_GT(t.prefill_tps, 0);
  EXPECT_GT(t.decode_tps, 0);
  EXPECT_GE(t.token_ms_p95, 0);
  EXPECT_GT(t.peak_bytes, 1u << 20);
}

}  // namespace
}  // namespace cyb::test
