// Every sampler and many orders of them against llama.cpp's samplers and transformers' logits
// processors (tests/golden/make/sampler.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "text/sampler/sampler.hpp"

namespace cyb {
namespace {

using Json = nlohmann::json;

Json golden_cases() {
  std::ifstream file(std::string(CYB_TESTS_DIR) + "/golden/sampler/cases.json");
  return Json::parse(file);
}

/// Ids 0..93 of the oracle's vocabulary are the characters from '!' on.
std::vector<DryBreaker> breakers(const Json& texts) {
  std::vector<DryBreaker> out;
  for (const std::string text : texts) out.push_back({text[0] - '!'});
  return out;
}

SamplingConfig config_of(const Json& c) {
  SamplingConfig out;
  const auto number = [&](const char* key, auto& to) {
    if (c.contains(key)) c.at(key).get_to(to);
  };
  out.temperature = 1.0;
  number("temperature", out.temperature);
  number("temperature_range", out.temperature_range);
  number("temperature_exponent", out.temperature_exponent);
  number("top_k", out.top_k);
  number("top_p", out.top_p);
  number("min_p", out.min_p);
  number("typical_p", out.typical_p);
  number("top_n_sigma", out.top_n_sigma);
  number("xtc_probability", out.xtc_probability);
  number("xtc_threshold", out.xtc_threshold);
  number("repetition_penalty", out.repetition_penalty);
  number("presence_penalty", out.presence_penalty);
  number("frequency_penalty", out.frequency_penalty);
  number("penalty_last_n", out.penalty_last_n);
  number("dry_multiplier", out.dry_multiplier);
  number("dry_base", out.dry_base);
  number("dry_allowed_length", out.dry_allowed_length);
  number("dry_last_n", out.dry_last_n);
  number("mirostat_tau", out.mirostat_tau);
  number("mirostat_eta", out.mirostat_eta);
  if (c.contains("dry_breaker_texts")) out.dry_breakers = breakers(c.at("dry_breaker_texts"));
  for (const std::string name : c.at("order")) out.order.push_back(*find_sampler(name));
  for (const Json& bias : c.value("logit_bias", Json::array())) {
    const double value =
        bias[1].is_null() ? -std::numeric_limits<double>::infinity() : bias[1].get<double>();
    out.logit_bias.push_back({bias[0].get<std::int32_t>(), value});
  }
  return out;
}

TEST(SamplerGolden, KeepsWhatTheOthersKeepAsLikelyAsTheySay) {
  const Json cases = golden_cases();
  ASSERT_GE(cases.size(), 700u);
  std::size_t n_plain = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Json& golden = cases[i];
    const SamplingConfig config = config_of(golden.at("config"));
    n_plain += is_plain_chain(config) ? 1 : 0;
    const auto logits = golden.at("logits").get<std::vector<float>>();
    auto sampler = Sampler::create(config, static_cast<std::int32_t>(logits.size()));
    ASSERT_TRUE(sampler.has_value()) << i << sampler.error().text();
    for (const std::int32_t id : golden.at("history")) sampler->accept(id);
    const auto got = sampler->distribution(logits, 3);
    ASSERT_TRUE(got.has_value()) << i << got.error().text();
    const Json& kept = golden.at("kept");
    ASSERT_EQ(got->size(), kept.size()) << "case " << i << ": " << golden.at("config").dump();
    double cumulative = 0;
    for (const Json& item : kept) {
      const auto same = std::find_if(got->begin(), got->end(), [&](const auto& token) {
        return token.id == item[0].get<std::int32_t>();
      });
      ASSERT_NE(same, got->end()) << "case " << i << ": token " << item[0];
      EXPECT_NEAR(same->probability, item[1].get<double>(), 2e-5) << "case " << i;
      cumulative += item[1].get<double>();
    }
    EXPECT_NEAR(cumulative, 1.0, 1e-5);
    // What is drawn is one of them.
    for (std::uint32_t position = 0; position < 5; ++position) {
      auto copy = *sampler;
      const auto drawn = copy.sample(logits, position);
      ASSERT_TRUE(drawn.has_value());
      EXPECT_TRUE(std::ranges::any_of(*got, [&](const auto& t) { return t.id == *drawn; })) << i;
    }
  }
  EXPECT_GT(n_plain, 20u);
  EXPECT_GT(cases.size() - n_plain, 400u);
}

}  // namespace
}  // namespace cyb
