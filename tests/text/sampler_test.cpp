// The sampler against the rule of spec ir.md section 5.8, written here once more in the most direct
// way.
#include "text/sampler/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/philox.hpp"
#include "text/sampler/exact_exp.hpp"

namespace cyb {
namespace {

std::vector<float> random_logits(std::mt19937& random, std::size_t n, bool ties) {
  std::vector<float> out(n);
  std::normal_distribution<float> normal(0.0F, 3.0F);
  for (float& x : out) x = ties ? std::round(normal(random)) : normal(random);
  return out;
}

// Sort everything, filter, renormalise, draw.
std::int32_t direct(const SamplingConfig& config, std::vector<float> logits,
                    const std::vector<std::int32_t>& seen, std::uint32_t position,
                    std::uint32_t row) {
  for (const std::int32_t id : std::vector<std::int32_t>(seen)) {
    float& x = logits[static_cast<std::size_t>(id)];
    x = static_cast<float>(x < 0 ? x * config.repetition_penalty : x / config.repetition_penalty);
  }
  struct Item {
    std::int32_t id;
    double p;
  };
  std::vector<Item> items;
  for (std::size_t i = 0; i < logits.size(); ++i)
    items.push_back({static_cast<std::int32_t>(i), logits[i]});
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.p > b.p; });
  if (config.temperature == 0) return items[0].id;
  if (config.top_k > 0 && config.top_k < items.size()) items.resize(config.top_k);
  const double max = items[0].p;
  double total = 0;
  for (Item& item : items) total += item.p = std::exp((item.p - max) / config.temperature);
  double cumulative = 0;
  std::size_t kept = 0;
  for (const Item& item : items) {
    ++kept;
    cumulative += item.p / total;
    if (config.top_p < 1 && cumulative >= config.top_p) break;
  }
  items.resize(kept);
  while (items.size() > 1 && items.back().p < config.min_p * items[0].p) items.pop_back();
  total = 0;
  for (const Item& item : items) total += item.p;
  const double u = philox_uniform(config.seed, position, row);
  cumulative = 0;
  for (const Item& item : items) {
    cumulative += item.p / total;
    if (cumulative > u) return item.id;
  }
  return items.back().id;
}

TEST(Sampler, EqualsTheRule) {
  std::mt19937 random(3);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % (sizeof...(values))];
  };
  for (int round = 0; round < 3000; ++round) {
    SamplingConfig config;
    config.temperature = pick(0.0, 0.3, 0.8, 1.0, 1.7, 20.0);
    config.top_k = pick(0U, 0U, 1U, 5U, 40U, 100000U);
    config.top_p = pick(1.0, 1.0, 0.95, 0.5, 0.001);
    config.min_p = pick(0.0, 0.0, 0.05, 0.6);
    config.repetition_penalty = pick(1.0, 1.3, 0.7);
    config.seed = random();
    const std::size_t n = pick(std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{3000});
    const auto logits = random_logits(random, n, round % 3 == 0);
    auto sampler = Sampler::create(config, static_cast<std::int32_t>(n));
    ASSERT_TRUE(sampler.has_value());
    std::vector<std::int32_t> seen;
    for (int i = 0; i < 10; ++i) {
      const std::int32_t id = static_cast<std::int32_t>(random() % n);
      sampler->accept(id);
      if (std::find(seen.begin(), seen.end(), id) == seen.end()) seen.push_back(id);
    }
    const std::uint32_t position = static_cast<std::uint32_t>(random() % 1000),
                        row = static_cast<std::uint32_t>(random() % 3);
    const auto got = sampler->sample(logits, position, row);
    ASSERT_TRUE(got.has_value());
    ASSERT_EQ(*got, direct(config, logits, seen, position, row)) << "round " << round;
  }
}

TEST(Sampler, DrawsWithTheRightFrequencies) {
  SamplingConfig config;
  config.temperature = 1.0;
  config.seed = 42;
  auto sampler = Sampler::create(config, 4);
  const std::vector<float> logits = {std::log(0.1F), std::log(0.2F), std::log(0.3F),
                                     std::log(0.4F)};
  std::vector<int> count(4, 0);
  const int n = 20000;
  for (int i = 0; i < n; ++i)
    ++count[static_cast<std::size_t>(*sampler->sample(logits, static_cast<std::uint32_t>(i)))];
  double chi2 = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected = n * 0.1 * static_cast<double>(i + 1);
    chi2 += (count[i] - expected) * (count[i] - expected) / expected;
  }
  EXPECT_LT(chi2, 16.3);  // 3 degrees of freedom, p = 0.001; the seed is fixed
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheMaxima) {
  auto sampler = Sampler::create({}, 5);
  EXPECT_EQ(*sampler->sample(std::vector<float>{0, 2, 1, 2, -0.0F}, 0), 1);
  EXPECT_EQ(*sampler->sample(std::vector<float>{-0.0F, 0.0F, -1, -1, -1}, 0), 0);
}

TEST(Sampler, NonFiniteLogitsAreErrors) {
  SamplingConfig config;
  config.temperature = 1.0;
  auto sampler = Sampler::create(config, 3);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    const auto got = sampler->sample(std::vector<float>{0, 0, bad}, 0);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().kind(), ErrorKind::kNonFinite);
    EXPECT_NE(got.error().text().find("at 2"), std::string::npos);
    EXPECT_FALSE(sampler->logprobs(std::vector<float>{0, bad, 0}, 0, {}).has_value());
  }
  EXPECT_FALSE(sampler->sample(std::vector<float>{0, 0}, 0).has_value());
}

TEST(Sampler, ConfigurationsAreChecked) {
  const auto bad = [](auto change) {
    SamplingConfig config;
    change(config);
    const auto made = Sampler::create(config, 4);
    return !made.has_value() && made.error().kind() == ErrorKind::kInvalidConfig;
  };
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.temperature = -1; }));
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.temperature = NAN; }));
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.top_p = 0; }));
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.top_p = 1.5; }));
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.min_p = 1; }));
  EXPECT_TRUE(bad([](SamplingConfig& c) { c.repetition_penalty = 0; }));
}

TEST(Sampler, LogprobsOfTheRawDistribution) {
  std::mt19937 random(5);
  const auto logits = random_logits(random, 500, true);
  SamplingConfig config;
  config.temperature = 0.5;
  config.repetition_penalty = 2.0;
  auto sampler = Sampler::create(config, 500);
  sampler->accept(3);
  std::vector<TokenLogprob> top(7);
  const auto chosen = sampler->logprobs(logits, 17, top);
  ASSERT_TRUE(chosen.has_value());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  EXPECT_NEAR(*chosen, logits[17] - std::log(sum), 1e-5);
  std::vector<std::size_t> order(500);
  for (std::size_t i = 0; i < 500; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return logits[a] > logits[b]; });
  for (std::size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(top[i].id), order[i]);
    EXPECT_NEAR(top[i].logprob, logits[order[i]] - std::log(sum), 1e-5);
  }
}

TEST(Sampler, ExactExpIsExp) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        -std::ldexp(static_cast<double>(random() >> 11), -53) * (i % 2 == 0 ? 1.0 : 708.0);
    const double expected = std::exp(x);
    ASSERT_NEAR(text::exact_exp(x) / expected, 1.0, 4e-16) << x;
  }
  EXPECT_EQ(text::exact_exp(0.0), 1.0);
  EXPECT_EQ(text::exact_exp(-1000.0), 0.0);
}

}  // namespace
}  // namespace cyb
