// The chain of any order: what it shares with the plain one, its state, its edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "base/philox.hpp"
#include "text/sampler/sampler.hpp"

namespace cyb {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

Sampler made(const SamplingConfig& config, std::int32_t vocab) {
  auto sampler = Sampler::create(config, vocab);
  EXPECT_TRUE(sampler.has_value()) << sampler.error().text();
  return *std::move(sampler);
}

std::vector<float> random_logits(std::mt19937& random, std::size_t n, bool ties) {
  std::vector<float> out(n);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  for (float& x : out) x = ties ? std::round(normal(random)) : normal(random);
  return out;
}

// A bias of 0 changes nothing but takes the general chain: both draw the same tokens.
TEST(SamplerChain, DrawsWhatThePlainChainDraws) {
  std::mt19937 random(11);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % (sizeof...(values))];
  };
  for (int round = 0; round < 2000; ++round) {
    SamplingConfig plain;
    plain.temperature = pick(0.0, 0.3, 1.0, 1.7, 20.0);
    plain.top_k = pick(0U, 0U, 1U, 40U, 100000U);
    plain.top_p = pick(1.0, 1.0, 0.95, 0.5, 0.001);
    plain.min_p = pick(0.0, 0.05, 0.6);
    plain.repetition_penalty = pick(1.0, 1.3, 0.7);
    plain.seed = random();
    SamplingConfig general = plain;
    general.logit_bias = {{0, 0.0}};
    ASSERT_TRUE(is_plain_chain(plain));
    ASSERT_FALSE(is_plain_chain(general));
    const std::size_t n = pick(std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{3000});
    const auto logits = random_logits(random, n, round % 3 == 0);
    Sampler one = made(plain, static_cast<std::int32_t>(n));
    Sampler two = made(general, static_cast<std::int32_t>(n));
    for (int i = 0; i < 10; ++i) {
      const std::int32_t id = static_cast<std::int32_t>(random() % n);
      one.accept(id);
      two.accept(id);
    }
    const auto position = static_cast<std::uint32_t>(random() % 1000);
    ASSERT_EQ(*one.sample(logits, position, 2), *two.sample(logits, position, 2)) << round;
  }
}

TEST(SamplerChain, TheOrderIsTheUsers) {
  // After top_p = 0.5 of a sharp distribution one token is left; of a flattened one several.
  const std::vector<float> logits = {4, 3, 2, 1, 0};
  SamplingConfig config;
  config.temperature = 10;
  config.top_p = 0.5;
  config.order = {SamplerKind::kTopP, SamplerKind::kTemperature};
  EXPECT_EQ(made(config, 5).distribution(logits, 0)->size(), 1u);
  config.order = {SamplerKind::kTemperature, SamplerKind::kTopP};
  EXPECT_EQ(made(config, 5).distribution(logits, 0)->size(), 3u);
  config.order = {SamplerKind::kTopP};  // no temperature: 1
  EXPECT_EQ(made(config, 5).distribution(logits, 0)->size(), 1u);
  config.order = {SamplerKind::kTemperature};  // no top_p
  EXPECT_EQ(made(config, 5).distribution(logits, 0)->size(), 5u);
}

TEST(SamplerChain, AllBannedButOne) {
  SamplingConfig config;
  config.temperature = 1.0;
  config.logit_bias = {{0, kNever}, {1, kNever}, {3, kNever}};
  config.top_p = 0.3;
  config.typical_p = 0.2;
  config.top_n_sigma = 1.0;
  config.xtc_probability = 1.0;
  config.xtc_threshold = 0.0;
  config.mirostat_tau = 3.0;
  config.temperature_range = 0.5;
  for (std::uint32_t position = 0; position < 50; ++position)
    EXPECT_EQ(*made(config, 4).sample(std::vector<float>{9, 9, -5, 9}, position), 2);
  config.logit_bias.push_back({2, kNever});
  const auto none = made(config, 4).sample(std::vector<float>{9, 9, -5, 9}, 0);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind(), ErrorKind::kInvalidInput);
  config = {};
  config.logit_bias = {{0, kNever}};
  EXPECT_EQ(*made(config, 4).sample(std::vector<float>{9, 1, 2, 2}, 0), 2) << "greedy too";
}

TEST(SamplerChain, TiesGoToTheLowerId) {
  const std::vector<float> logits = {1, 2, 2, 2, 1, 2};
  const auto kept = [&](const auto& change) {
    SamplingConfig config;
    config.temperature = 1.0;
    config.logit_bias = {{0, 0.0}};
    change(config);
    std::vector<std::int32_t> ids;
    const auto found = made(config, 6).distribution(logits, 0);
    for (const auto& token : *found) ids.push_back(token.id);
    return ids;
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(kept([](SamplingConfig& c) { c.top_k = 2; }), (Ids{1, 2}));
  EXPECT_EQ(kept([](SamplingConfig& c) { c.top_p = 0.4; }), (Ids{1, 2}));
  EXPECT_EQ(kept([](SamplingConfig& c) { c.typical_p = 0.3; }), (Ids{1, 2}));
  EXPECT_EQ(kept([](SamplingConfig& c) { c.top_n_sigma = 0.01; }), (Ids{1, 2, 3, 5}));
  // The least likely of those above the threshold is the last in order.
  EXPECT_EQ(kept([](SamplingConfig& c) {
              c.xtc_probability = 1;
              c.xtc_threshold = 0.2;
            }),
            (Ids{5, 0, 4}));
  EXPECT_EQ(kept([](SamplingConfig& c) { c.temperature = 0; }), (Ids{1}));
}

TEST(SamplerChain, ThresholdsAtTheirEnds) {
  const std::vector<float> logits = {3, 1, 0, -2};
  const auto size = [&](const auto& change) {
    SamplingConfig config;
    config.temperature = 1.0;
    config.logit_bias = {{0, 0.0}};
    change(config);
    return made(config, 4).distribution(logits, 0)->size();
  };
  EXPECT_EQ(size([](SamplingConfig& c) { c.top_k = 4000000000U; }), 4u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.top_p = 1; }), 4u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.top_p = 1e-300; }), 1u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.min_p = 0; }), 4u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.min_p = 0.999999; }), 1u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.typical_p = 1; }), 4u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.typical_p = 1e-300; }), 1u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.temperature = 1e-300; }), 4u) << "no NaN, no loss";
  EXPECT_EQ(size([](SamplingConfig& c) {
              c.xtc_probability = 1;
              c.xtc_threshold = 0;
            }),
            1u);
  EXPECT_EQ(size([](SamplingConfig& c) {
              c.xtc_probability = 1;
              c.xtc_threshold = 0.500001;
            }),
            4u);
  EXPECT_EQ(size([](SamplingConfig& c) { c.mirostat_tau = 1e-9; }), 1u);
}

TEST(SamplerChain, ValuesOutOfRangeAreRefusedByName) {
  const auto refused = [](const char* key, const auto& change) {
    SamplingConfig config;
    config.temperature = 1;
    change(config);
    const auto sampler = Sampler::create(config, 4);
    ASSERT_FALSE(sampler.has_value()) << key;
    EXPECT_NE(sampler.error().text().find(key), std::string::npos) << sampler.error().text();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double values[] = {nan, -0.1, std::numeric_limits<double>::infinity()};
  for (const double bad : values) {
    refused("temperature_range", [&](SamplingConfig& c) { c.temperature_range = bad; });
    refused("typical_p", [&](SamplingConfig& c) { c.typical_p = bad; });
    refused("top_n_sigma", [&](SamplingConfig& c) { c.top_n_sigma = bad; });
    refused("xtc_probability", [&](SamplingConfig& c) { c.xtc_probability = bad; });
    refused("xtc_threshold", [&](SamplingConfig& c) { c.xtc_threshold = bad; });
    refused("dry_multiplier", [&](SamplingConfig& c) { c.dry_multiplier = bad; });
    refused("dry_base", [&](SamplingConfig& c) { c.dry_base = bad; });
    refused("mirostat_tau", [&](SamplingConfig& c) { c.mirostat_tau = bad; });
    refused("mirostat_eta", [&](SamplingConfig& c) { c.mirostat_eta = bad; });
  }
  refused("presence_penalty", [&](SamplingConfig& c) { c.presence_penalty = nan; });
  refused("frequency_penalty", [&](SamplingConfig& c) { c.frequency_penalty = nan; });
  refused("logit_bias", [&](SamplingConfig& c) { c.logit_bias = {{0, nan}}; });
  refused("logit_bias", [&](SamplingConfig& c) { c.logit_bias = {{4, 1.0}}; });
  refused("logit_bias", [&](SamplingConfig& c) { c.logit_bias = {{-1, 1.0}}; });
  refused("twice", [&](SamplingConfig& c) { c.order = {SamplerKind::kTopK, SamplerKind::kTopK}; });
  refused("last",
          [&](SamplingConfig& c) { c.order = {SamplerKind::kMirostat, SamplerKind::kTopK}; });
}

TEST(SamplerChain, NotANumberIsRefusedInAnyChain) {
  SamplingConfig config;
  config.temperature = 1.0;
  config.typical_p = 0.5;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const auto got = made(config, 3).sample(std::vector<float>{0, bad, 0}, 0);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().kind(), ErrorKind::kNonFinite);
  }
}

// mu' = mu - eta * (surprise - tau), from mu = 2 tau, written once more.
TEST(SamplerChain, MirostatFollowsItsTarget) {
  std::mt19937 random(5);
  SamplingConfig config;
  config.temperature = 0.9;
  config.mirostat_tau = 3.0;
  config.mirostat_eta = 0.2;
  config.seed = 8;
  Sampler sampler = made(config, 300);
  double mu = 6.0;
  for (std::uint32_t position = 0; position < 200; ++position) {
    const auto logits = random_logits(random, 300, false);
    std::vector<std::pair<double, std::int32_t>> order;
    double sum = 0;
    for (std::size_t i = 0; i < 300; ++i) {
      order.push_back({-static_cast<double>(logits[i]), static_cast<std::int32_t>(i)});
      sum += std::exp(static_cast<double>(logits[i]) / 0.9);
    }
    std::ranges::sort(order);
    std::vector<double> kept;
    for (const auto& [minus, id] : order) {
      const double p = std::exp(-minus / 0.9) / sum;
      if (!kept.empty() && -std::log2(p) > mu) break;
      kept.push_back(p);
    }
    double total = 0, cumulative = 0;
    for (const double p : kept) total += p;
    std::size_t at = 0;
    const double u = static_cast<double>(philox_uniform(8, position, 0));
    while (at + 1 < kept.size() && (cumulative += kept[at]) <= u * total) ++at;
    const auto got = sampler.sample(logits, position);
    ASSERT_EQ(*got, order[at].second) << position;
    mu -= 0.2 * (-std::log2(kept[at] / total) - 3.0);
  }
}

// Quadratic repetition search, as text-generation-webui's first version of DRY had it.
std::map<std::int32_t, std::size_t> direct_dry(const std::vector<std::int32_t>& ids,
                                               const std::vector<std::int32_t>& breakers) {
  std::map<std::int32_t, std::size_t> out;
  const auto breaks = [&](std::int32_t id) {
    return std::ranges::find(breakers, id) != breakers.end();
  };
  if (ids.empty() || breaks(ids.back())) return out;
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    if (ids[i] != ids.back() || breaks(ids[i + 1])) continue;
    std::size_t length = 1;
    while (length <= i && ids[i - length] == ids[ids.size() - 1 - length] &&
           !breaks(ids[i - length]))
      ++length;
    out[ids[i + 1]] = std::max(out[ids[i + 1]], length);
  }
  return out;
}

TEST(SamplerChain, DryFindsEveryRepetition) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const auto alphabet = static_cast<std::int32_t>(1 + random() % 5);
    const std::vector<std::int32_t> breakers =
        round % 3 == 0 ? std::vector<std::int32_t>{0} : std::vector<std::int32_t>{};
    SamplingConfig config;
    config.dry_multiplier = 1.0;
    config.dry_base = 2.0;
    config.dry_allowed_length = 1;
    for (const std::int32_t id : breakers) config.dry_breakers.push_back({id});
    text::TokenHistory history(config, 6);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 60; ++i) {
      ids.push_back(static_cast<std::int32_t>(random()) % alphabet);
      if (ids.back() < 0) ids.back() = -ids.back();
      history.accept(ids.back());
      history.find_repetitions();
      const auto expected = direct_dry(ids, breakers);
      for (std::int32_t id = 0; id < 6; ++id) {
        const auto found = expected.find(id);
        ASSERT_EQ(history.repetition(id), found == expected.end() ? 0 : found->second)
            << "round " << round << ", " << i << ", token " << id;
      }
    }
  }
}

TEST(SamplerChain, ABreakerOfSeveralTokensEndsARepetition) {
  SamplingConfig config;
  config.dry_multiplier = 1.0;
  config.dry_breakers = {{3, {4}}};
  text::TokenHistory history(config, 8);
  for (const std::int32_t id : {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6}) history.accept(id);
  history.find_repetitions();
  EXPECT_EQ(history.repetition(7), 2u);  // "5 6", not "1 2 3 4 5 6"
}

TEST(SamplerChain, DryStaysFiniteAndLinear) {
  SamplingConfig config;
  config.temperature = 1.0;
  config.dry_multiplier = 5.0;
  config.dry_base = 4.0;
  Sampler sampler = made(config, 3);
  for (int i = 0; i < 200000; ++i) sampler.accept(1);  // quadratic: minutes
  const auto got = sampler.distribution(std::vector<float>{0, 9, 0}, 0);
  ASSERT_TRUE(got.has_value());
  EXPECT_NEAR((*got)[0].probability, 0.5, 1e-12);
  EXPECT_EQ(got->back().id, 1);
}

TEST(SamplerChain, PenaltiesForgetWhatLiesTooFarBack) {
  SamplingConfig config;
  config.presence_penalty = 1.0;
  config.penalty_last_n = 3;
  Sampler sampler = made(config, 5);
  for (const std::int32_t id : {0, 1, 2, 3}) sampler.accept(id);
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 1.5, 1.5, 1.5, 0}, 0), 0);
  sampler.reset();
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 1.5, 1.5, 1.5, 0}, 0), 1);
}

TEST(SamplerChain, XtcHappensAsOftenAsAsked) {
  SamplingConfig config;
  config.temperature = 1.0;
  config.xtc_probability = 0.3;
  config.xtc_threshold = 0.2;
  config.seed = 4;
  Sampler sampler = made(config, 2);
  int cut = 0;
  for (std::uint32_t position = 0; position < 10000; ++position)
    cut += sampler.distribution(std::vector<float>{1, 0.5}, position)->size() == 1 ? 1 : 0;
  EXPECT_NEAR(cut, 3000, 160);  // 3.5 standard deviations; the seed is fixed
}

}  // namespace
}  // namespace cyb
