// The chain. Candidates are found by a growing selection of the largest logits, never by sorting
// the vocabulary: first 64, then eightfold more while the filters and the draw need more.
#include "text/sampler/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/philox.hpp"
#include "ops/math/elementary.hpp"
#include "text/sampler/exact_exp.hpp"

namespace cyb {
namespace {

constexpr std::size_t kFirstSelection = 64;

/// Ascending order of the key is descending order of the logit; with the id below it, ties go to
/// the lower id.
std::uint64_t key_of(float logit, std::size_t id) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(logit + 0.0F);  // -0 becomes +0
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return static_cast<std::uint64_t>(~ascending) << 32 | id;
}

std::int32_t id_of(std::uint64_t key) noexcept {
  return static_cast<std::int32_t>(key & 0xFFFFFFFFU);
}

Result<void> check_finite(std::span<const float> logits) {
  // An exponent of all ones is infinity or NaN; the loop has no branches, so that it vectorises.
  std::uint32_t bad = 0;
  for (const float logit : logits) {
    bad |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(logit) & 0x7F800000U) ==
                                      0x7F800000U);
  }
  if (bad == 0) return {};
  const auto found =
      std::find_if(logits.begin(), logits.end(), [](float x) { return !std::isfinite(x); });
  return fail(non_finite("Sample", "logits", static_cast<std::uint64_t>(found - logits.begin())));
}

double weight_of(float logit, float max, double temperature) noexcept {
  return text::exact_exp((static_cast<double>(logit) - static_cast<double>(max)) / temperature);
}

/// Sum over the vocabulary, in four lanes by id mod 4 whatever the machine.
double sum_of_weights(std::span<const float> logits, float max, double temperature) noexcept {
  double lanes[4] = {0.0, 0.0, 0.0, 0.0};
  std::size_t id = 0;
  for (; id + 4 <= logits.size(); id += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane)
      lanes[lane] += weight_of(logits[id + lane], max, temperature);
  }
  for (; id < logits.size(); ++id) lanes[id % 4] += weight_of(logits[id], max, temperature);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

std::int32_t first_max(std::span<const float> logits) noexcept {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// What a sampler that is not in the chain would do, off.
void switch_off(SamplingConfig& config, std::span<const SamplerKind> active) {
  const auto off = [&](SamplerKind kind) {
    return std::ranges::find(active, kind) == active.end();
  };
  if (off(SamplerKind::kPenalties)) config.repetition_penalty = 1.0;
  if (off(SamplerKind::kTopK)) config.top_k = 0;
  if (off(SamplerKind::kTopP)) config.top_p = 1.0;
  if (off(SamplerKind::kMinP)) config.min_p = 0.0;
  if (off(SamplerKind::kMirostat)) config.mirostat_tau = 0.0;
}

/// A number of its own for XTC: the token's is the one with counter word 1 = 0.
double xtc_chance(std::uint64_t seed, std::uint32_t position, std::uint32_t row) noexcept {
  return static_cast<double>(philox4x32({position, 1, 0, row}, seed)[0] >> 8) * 0x1p-24;
}

}  // namespace

Result<Sampler> Sampler::create(const SamplingConfig& config, std::int32_t vocab_size) {
  if (vocab_size <= 0) return fail(invalid_config("sampling.vocab_size", "must be > 0"));
  CYB_TRY(check_sampling(config));
  for (const LogitBias& bias : config.logit_bias) {
    if (bias.id >= 0 && bias.id < vocab_size) continue;
    return fail(invalid_input(
        fmt::format("logit_bias: token id {} is not in 0..{}", bias.id, vocab_size - 1)));
  }
  return Sampler(config, vocab_size);
}

Sampler::Sampler(SamplingConfig config, std::int32_t vocab_size)
    : config_(std::move(config)), vocab_size_(vocab_size), plain_(is_plain_chain(config_)) {
  const std::size_t size = static_cast<std::size_t>(vocab_size);
  active_ = active_samplers(config_);
  switch_off(config_, active_);
  best_.reserve(size);
  if (!plain_) {
    history_ = text::TokenHistory(config_, size);
    chain_ = text::Chain(size);
    mirostat_mu_ = 2.0 * config_.mirostat_tau;
    return;
  }
  if (config_.repetition_penalty != 1.0) {
    work_.resize(size);
    seen_.reserve(size);
    seen_bits_.assign((size + 63) / 64, 0);
  }
  if (config_.temperature > 0) weight_.reserve(size);
}

void Sampler::accept(std::int32_t id) {
  if (!plain_) history_.accept(id);
  if (seen_bits_.empty() || id < 0 || id >= vocab_size_) return;
  std::uint64_t& word = seen_bits_[static_cast<std::size_t>(id) / 64];
  const std::uint64_t bit = 1ULL << (static_cast<std::size_t>(id) % 64);
  if ((word & bit) != 0) return;
  word |= bit;
  seen_.push_back(id);
}

void Sampler::reset() {
  history_.clear();
  mirostat_mu_ = 2.0 * config_.mirostat_tau;
  seen_.clear();
  std::fill(seen_bits_.begin(), seen_bits_.end(), 0);
}

void Sampler::reserve(std::size_t n_tokens) {
  history_.reserve(n_tokens);
}

std::span<const float> Sampler::penalised(std::span<const float> logits) {
  if (seen_.empty()) return logits;
  std::copy(logits.begin(), logits.end(), work_.begin());
  for (const std::int32_t id : seen_) {
    float& logit = work_[static_cast<std::size_t>(id)];
    const double value = logit;
    logit = static_cast<float>(value < 0 ? value * config_.repetition_penalty
                                         : value / config_.repetition_penalty);
  }
  return work_;
}

void Sampler::select(std::span<const float> logits, std::size_t count) {
  count = std::min(count, logits.size());
  const std::size_t room = std::min(logits.size(), 4 * count);
  best_.clear();
  float floor = -std::numeric_limits<float>::infinity();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] == -std::numeric_limits<float>::infinity()) continue;  // not allowed
    // A logit equal to the floor has a higher id than those kept, so it loses.
    if (!(logits[id] > floor) && best_.size() >= count) continue;
    best_.push_back(key_of(logits[id], id));
    if (best_.size() < room || room == logits.size()) continue;
    const auto nth = best_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(best_.begin(), nth, best_.end());
    best_.resize(count);
    floor = logits[static_cast<std::size_t>(id_of(best_[count - 1]))];
  }
  if (best_.size() > count) {
    std::nth_element(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                     best_.end());
    best_.resize(count);
  }
  std::sort(best_.begin(), best_.end());
}

// Candidates that top-p and min-p keep, or 0 if the selection is too short to tell.
std::size_t Sampler::kept(double total, bool whole) const {
  std::size_t count = weight_.size();
  bool cut = false;
  if (config_.top_p < 1.0) {
    double sum = 0.0;
    for (std::size_t i = 0; i < weight_.size() && !cut; ++i) {
      sum += weight_[i];
      cut = sum >= config_.top_p * total;
      if (cut) count = i + 1;
    }
    if (!cut && !whole) return 0;
  }
  // Weights are relative to the largest, which is 1.
  while (count > 1 && weight_[count - 1] < config_.min_p) {
    --count;
    cut = true;
  }
  return config_.min_p > 0 && !cut && !whole ? 0 : count;
}

// The first candidate in order whose cumulative weight exceeds uniform * (sum of what is kept).
std::int32_t Sampler::draw(std::span<const float> logits, float max, float uniform) {
  const bool top_k = config_.top_k > 0 && config_.top_k < logits.size();
  const std::size_t all = top_k ? config_.top_k : logits.size();
  double total = top_k ? 0.0 : sum_of_weights(logits, max, config_.temperature);
  for (std::size_t count = top_k ? all : std::min(kFirstSelection, all);; count *= 8) {
    select(logits, count);
    weight_.clear();
    for (const std::uint64_t key : best_) {
      weight_.push_back(
          weight_of(logits[static_cast<std::size_t>(id_of(key))], max, config_.temperature));
    }
    if (top_k) total = std::accumulate(weight_.begin(), weight_.end(), 0.0);
    const bool whole = count >= all;
    const std::size_t n_kept = kept(total, whole);
    if (n_kept == 0) continue;
    const bool filtered = config_.top_p < 1.0 || config_.min_p > 0.0;
    const double sum =
        filtered ? std::accumulate(weight_.begin(),
                                   weight_.begin() + static_cast<std::ptrdiff_t>(n_kept), 0.0)
                 : total;
    double cumulative = 0.0;
    for (std::size_t i = 0; i < n_kept; ++i) {
      cumulative += weight_[i];
      if (cumulative > static_cast<double>(uniform) * sum) return id_of(best_[i]);
    }
    if (whole || filtered) return id_of(best_[n_kept - 1]);
  }
}

Result<void> Sampler::check_logits(std::span<const float> logits) const {
  if (logits.size() != static_cast<std::size_t>(vocab_size_)) {
    return fail(
        invalid_input(fmt::format("{} logits for a vocabulary of {}", logits.size(), vocab_size_)));
  }
  return check_finite(logits);
}

Result<void> Sampler::check_allowed(std::span<const std::uint64_t> allowed) const {
  if (allowed.empty()) return {};
  if (allowed.size() != (static_cast<std::size_t>(vocab_size_) + 63) / 64)
    return fail(invalid_input("the mask of allowed tokens is not of the vocabulary's size"));
  if (std::ranges::any_of(allowed, [](std::uint64_t word) { return word != 0; })) return {};
  return fail(
      invalid_input("no token of the vocabulary may come next: it has none for what the grammar "
                    "asks for here"));
}

std::span<const float> Sampler::only_allowed(std::span<const float> logits,
                                             std::span<const std::uint64_t> allowed) {
  if (allowed.empty()) return logits;
  masked_.resize(logits.size());
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const bool is_allowed = (allowed[id / 64] >> (id % 64) & 1) != 0;
    masked_[id] = is_allowed ? logits[id] : -std::numeric_limits<float>::infinity();
  }
  return masked_;
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::uint32_t position,
                                     std::uint32_t row, std::span<const std::uint64_t> allowed) {
  CYB_TRY(check_logits(logits));
  CYB_TRY(check_allowed(allowed));
  if (!plain_) return sample_chain(logits, position, row, allowed);
  std::span<const float> adjusted = penalised(logits);
  if (!work_.empty() && !seen_.empty()) CYB_TRY(check_finite(adjusted));
  adjusted = only_allowed(adjusted, allowed);
  const std::int32_t best = first_max(adjusted);
  if (config_.temperature == 0.0) return best;
  return draw(adjusted, adjusted[static_cast<std::size_t>(best)],
              philox_uniform(config_.seed, position, row));
}

/// All samplers but the draw; of a greedy answer only what changes the logits' order.
Result<void> Sampler::run_chain(std::span<const float> logits, std::uint32_t position,
                                std::uint32_t row, std::span<const std::uint64_t> allowed) {
  if (!chain_.load(logits, config_.logit_bias, allowed)) {
    return fail(invalid_input("the logit bias bans every token"));
  }
  const bool greedy = config_.temperature == 0.0;
  for (const SamplerKind kind : active_) {
    if (kind == SamplerKind::kPenalties) chain_.penalties(config_, history_);
    if (kind == SamplerKind::kDry) chain_.dry(config_, history_);
    if (greedy) continue;
    if (kind == SamplerKind::kTemperature) chain_.temperature(config_);
    if (kind == SamplerKind::kTopNSigma) chain_.top_n_sigma(config_.top_n_sigma);
    if (kind == SamplerKind::kTopK) chain_.top_k(config_.top_k);
    if (kind == SamplerKind::kTopP) chain_.top_p(config_.top_p);
    if (kind == SamplerKind::kMinP) chain_.min_p(config_.min_p);
    if (kind == SamplerKind::kTypical) chain_.typical(config_.typical_p);
    if (kind == SamplerKind::kXtc) chain_.xtc(config_, xtc_chance(config_.seed, position, row));
    if (kind == SamplerKind::kMirostat) chain_.surprise(mirostat_mu_);
  }
  return {};
}

Result<std::int32_t> Sampler::sample_chain(std::span<const float> logits, std::uint32_t position,
                                           std::uint32_t row,
                                           std::span<const std::uint64_t> allowed) {
  CYB_TRY(run_chain(logits, position, row, allowed));
  if (config_.temperature == 0.0) return chain_.best();
  const text::Chain::Drawn drawn =
      chain_.draw(static_cast<double>(philox_uniform(config_.seed, position, row)));
  if (config_.mirostat_tau > 0.0) {
    mirostat_mu_ -=
        config_.mirostat_eta * (-math::log2_f64(drawn.probability) - config_.mirostat_tau);
  }
  return drawn.id;
}

Result<std::vector<Sampler::TokenProbability>> Sampler::distribution(
    std::span<const float> logits, std::uint32_t position, std::uint32_t row,
    std::span<const std::uint64_t> allowed) {
  CYB_TRY(check_logits(logits));
  CYB_TRY(check_allowed(allowed));
  const std::span<const float> adjusted = plain_ ? penalised(logits) : logits;
  CYB_TRY(check_finite(adjusted));
  CYB_TRY(run_chain(adjusted, position, row, allowed));
  if (config_.temperature == 0.0) return std::vector<TokenProbability>{{chain_.best(), 1.0}};
  const std::span<const text::Candidate> sorted = chain_.sorted();
  const std::span<const double> weights = chain_.weights();
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<TokenProbability> out;
  for (std::size_t i = 0; i < sorted.size(); ++i) out.push_back({sorted[i].id, weights[i] / sum});
  return out;
}

Result<float> Sampler::logprobs(std::span<const float> logits, std::int32_t chosen,
                                std::span<TokenLogprob> top) {
  const bool fits =
      logits.size() == static_cast<std::size_t>(vocab_size_) && top.size() <= logits.size();
  if (!fits || chosen < 0 || chosen >= vocab_size_) {
    return fail(invalid_input(
        fmt::format("log-probabilities: token {}, top {}, {} logits, vocabulary of {}", chosen,
                    top.size(), logits.size(), vocab_size_)));
  }
  CYB_TRY(check_finite(logits));
  const float max = logits[static_cast<std::size_t>(first_max(logits))];
  const double log_sum = static_cast<double>(max) + math::log_f64(sum_of_weights(logits, max, 1.0));
  const auto logprob = [&](std::int32_t id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum);
  };
  if (!top.empty()) {
    select(logits, top.size());
    for (std::size_t i = 0; i < top.size(); ++i)
      top[i] = {id_of(best_[i]), logprob(id_of(best_[i]))};
  }
  return logprob(chosen);
}

}  // namespace cyb
