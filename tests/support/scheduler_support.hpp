// What the callbacks of one request heard, and the solo run that it must equal.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/scheduler.hpp"
#include "support/engine_support.hpp"

namespace cyb::test {

struct Heard {
  std::map<std::uint32_t, std::string> texts;  // by index, as the deltas gave them
  std::map<std::uint32_t, std::size_t> logprobs;
  std::map<std::uint32_t, int> overs;
  int ends = 0;
  std::optional<Error> error;
  std::vector<GenerateResult> results;
};

inline RequestEvents ears(Heard& heard) {
  return {[&heard](const AnswerDelta& delta) {
            EXPECT_EQ(heard.ends, 0);
            heard.texts[delta.index] += delta.text;
            heard.logprobs[delta.index] += delta.tokens.size();
            heard.overs[delta.index] += delta.over ? 1 : 0;
          },
          [&heard](Result<std::vector<GenerateResult>> got) {
            ++heard.ends;
            if (got) {
              heard.results = *std::move(got);
            } else {
              heard.error = std::move(got).error();
            }
          }};
}

inline void run_all(Scheduler& scheduler) {
  int n_turns = 0;
  while (scheduler.turn()) ASSERT_LT(++n_turns, 20000);
}

/// Answer `index` of the request, alone in a fresh session.
inline GenerateResult solo_answer(const std::shared_ptr<Engine>& engine,
                                  const GenerateRequest& request, std::uint32_t index) {
  Session alone(engine);
  GenerateOptions options = request.options;
  options.row = index;
  return value(generate(alone, request.prompt, options));
}

/// Tokens, text, reason and every log-probability, bit for bit.
inline void expect_same_answer(const GenerateResult& got, const GenerateResult& solo) {
  EXPECT_EQ(got.tokens, solo.tokens);
  EXPECT_EQ(got.text, solo.text);
  EXPECT_EQ(got.finish_reason, solo.finish_reason);
  ASSERT_EQ(got.logprobs.size(), solo.logprobs.size());
  for (std::size_t t = 0; t < solo.logprobs.size(); ++t) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got.logprobs[t].logprob),
              std::bit_cast<std::uint32_t>(solo.logprobs[t].logprob));
  }
}

inline void expect_solo(const std::shared_ptr<Engine>& engine, const GenerateRequest& request,
                        const Heard& heard, std::size_t number) {
  SCOPED_TRACE("request " + std::to_string(number));
  ASSERT_FALSE(heard.error.has_value()) << heard.error->text();
  EXPECT_EQ(heard.ends, 1);
  ASSERT_EQ(heard.results.size(), request.n_answers);
  for (const GenerateResult& got : heard.results) {
    const GenerateResult solo = solo_answer(engine, request, got.index);
    expect_same_answer(got, solo);
    EXPECT_EQ(heard.texts.at(got.index), solo.text);
    EXPECT_EQ(heard.overs.at(got.index), 1);
    EXPECT_EQ(heard.logprobs.at(got.index), solo.logprobs.size());
  }
}

}  // namespace cyb::test
