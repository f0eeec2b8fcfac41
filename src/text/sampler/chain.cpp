// Prefixes are sorted as far as they are needed, eightfold more at a time, never the vocabulary at
// once.
#include "text/sampler/chain.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/math/elementary.hpp"
#include "text/sampler/exact_exp.hpp"

namespace cyb::text {
namespace {

constexpr std::size_t kFirstPrefix = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestLog = 88.7228391;  // ln of the largest f32

bool before(const Candidate& a, const Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// By score (ascending, in `logit`), then by place.
bool typical_before(const Candidate& a, const Candidate& b) noexcept {
  return a.logit != b.logit ? a.logit < b.logit : a.id < b.id;
}

/// Puts the first `count` of `order` at the front of [sorted, end), sorted.
template <class Order>
void sort_prefix(std::vector<Candidate>& items, std::size_t sorted, std::size_t count,
                 Order order) {
  const auto at = [&](std::size_t i) { return items.begin() + static_cast<std::ptrdiff_t>(i); };
  count = std::min(count, items.size());
  if (sorted >= count) return;
  if (count < items.size()) std::nth_element(at(sorted), at(count), items.end(), order);
  std::sort(at(sorted), at(count), order);
}

}  // namespace

Chain::Chain(std::size_t vocab_size) {
  items_.reserve(vocab_size);
  weights_.reserve(vocab_size);
  scored_.reserve(vocab_size);
}

bool Chain::load(std::span<const float> logits, std::span<const LogitBias> bias,
                 std::span<const std::uint64_t> allowed) {
  items_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    items_[i] = {static_cast<double>(logits[i]) + 0.0, static_cast<std::int32_t>(i)};
  }
  bool banned = false;
  for (const LogitBias& b : bias) {
    if (b.id < 0 || static_cast<std::size_t>(b.id) >= logits.size()) continue;
    items_[static_cast<std::size_t>(b.id)].logit += b.bias;
    banned = banned || std::isinf(b.bias);
  }
  if (banned) std::erase_if(items_, [](const Candidate& c) { return c.logit == -kInfinity; });
  if (!allowed.empty()) {
    std::erase_if(items_, [&](const Candidate& c) {
      const std::size_t id = static_cast<std::size_t>(c.id);
      return (allowed[id / 64] >> (id % 64) & 1) == 0;
    });
  }
  sorted_ = false;
  return !items_.empty();
}

void Chain::penalties(const SamplingConfig& config, const TokenHistory& history) {
  for (Candidate& item : items_) {
    const std::uint32_t count = history.count(item.id);
    if (count == 0) continue;
    item.logit = item.logit < 0 ? item.logit * config.repetition_penalty
                                : item.logit / config.repetition_penalty;
    item.logit -= count * config.frequency_penalty + config.presence_penalty;
  }
  if (sorted_) std::ranges::sort(items_, before);
}

void Chain::dry(const SamplingConfig& config, TokenHistory& history) {
  history.find_repetitions();
  // Below the largest f32 whatever the length of the repetition.
  const double most = config.dry_base > 1.000001
                          ? std::floor(kLargestLog / math::log_f64(config.dry_base))
                          : kInfinity;
  for (Candidate& item : items_) {
    const std::uint32_t length = history.repetition(item.id);
    if (length < config.dry_allowed_length) continue;
    const double exponent =
        std::min<double>(static_cast<double>(length - config.dry_allowed_length), most);
    item.logit -= config.dry_multiplier * math::pow_f64(config.dry_base, exponent);
  }
  if (sorted_) std::ranges::sort(items_, before);
}

double Chain::largest() const noexcept {
  if (sorted_) return items_.front().logit;
  double max = -kInfinity;
  for (const Candidate& item : items_) max = std::max(max, item.logit);
  return max;
}

/// Fills weights_ and adds them up.
double Chain::total() {
  const double max = largest();
  weights_.clear();
  double sum = 0;
  for (const Candidate& item : items_) {
    weights_.push_back(exact_exp(item.logit - max));
    sum += weights_.back();
  }
  return sum;
}

/// Nats, from weights_ and their sum.
double Chain::entropy(double sum) const noexcept {
  double out = 0;
  for (const double weight : weights_) {
    const double p = weight / sum;
    if (p > 0) out -= p * math::log_f64(p);
  }
  return out;
}

void Chain::keep_only(std::size_t at) {
  items_[0] = items_[at];
  items_.resize(1);
  sorted_ = true;
}

void Chain::temperature(const SamplingConfig& config) {
  double t = config.temperature;
  if (config.temperature_range > 0) {
    if (items_.size() <= 1) return;
    const double sum = total();
    const double low = std::max(0.0, t - config.temperature_range);
    const double high = t + config.temperature_range;
    const double share =
        std::max(0.0, entropy(sum) / math::log_f64(static_cast<double>(items_.size())));
    t = low + (high - low) * (share > 0 ? math::pow_f64(share, config.temperature_exponent) : 0.0);
  }
  const double max = largest();
  if (t <= 0) {
    const auto best = std::ranges::min_element(items_, before);
    keep_only(static_cast<std::size_t>(best - items_.begin()));
    return;
  }
  // A penalty that follows looks at the sign, so the values stay where they are; relative to the
  // largest only where t is so small that they would overflow.
  const double shift = std::abs(max) / t < 1e290 ? 0.0 : max;
  for (Candidate& item : items_) item.logit = (item.logit - shift) / t;
}

void Chain::top_n_sigma(double n) {
  if (items_.size() <= 1) return;
  double sum = 0, squares = 0;
  std::size_t count = 0;
  for (const Candidate& item : items_) {
    if (item.logit == -kInfinity) continue;
    sum += item.logit;
    ++count;
  }
  const double mean = sum / static_cast<double>(count);
  for (const Candidate& item : items_) {
    if (item.logit != -kInfinity) squares += (item.logit - mean) * (item.logit - mean);
  }
  const double floor = largest() - n * std::sqrt(squares / static_cast<double>(count));
  std::erase_if(items_, [floor](const Candidate& c) { return c.logit < floor; });
}

void Chain::top_k(std::size_t k) {
  if (k >= items_.size()) return;
  if (!sorted_) sort_prefix(items_, 0, k, before);
  items_.resize(k);
  sorted_ = true;
}

void Chain::top_p(double p) {
  const double sum = total(), max = largest();
  double cumulative = 0;
  std::size_t done = 0;
  for (std::size_t count = kFirstPrefix;; count *= 8) {
    if (!sorted_) sort_prefix(items_, done, count, before);
    for (const std::size_t end = std::min(count, items_.size()); done < end; ++done) {
      cumulative += exact_exp(items_[done].logit - max);
      if (cumulative < p * sum) continue;
      items_.resize(done + 1);
      break;
    }
    if (cumulative >= p * sum || done >= items_.size()) break;
  }
  sorted_ = true;
}

void Chain::min_p(double p) {
  const double max = largest();
  std::erase_if(items_, [&](const Candidate& c) { return exact_exp(c.logit - max) < p; });
}

void Chain::typical(double p) {
  const double sum = total(), wanted = entropy(sum), max = largest(), log_sum = math::log_f64(sum);
  // The place of a candidate decides among equal scores: it needs one that every machine agrees on.
  scored_.clear();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    scored_.push_back(
        {std::abs(log_sum - (items_[i].logit - max) - wanted), static_cast<std::int32_t>(i)});
  }
  double cumulative = 0;
  std::size_t done = 0;
  for (std::size_t count = kFirstPrefix;; count *= 8) {
    sort_prefix(scored_, done, count, typical_before);
    for (const std::size_t end = std::min(count, scored_.size()); done < end; ++done) {
      cumulative += weights_[static_cast<std::size_t>(scored_[done].id)];
      if (cumulative < p * sum) continue;
      scored_.resize(done + 1);
      break;
    }
    if (cumulative >= p * sum || done >= scored_.size()) break;
  }
  for (Candidate& item : scored_) item = items_[static_cast<std::size_t>(item.id)];
  std::swap(items_, scored_);
  std::ranges::sort(items_, before);
  sorted_ = true;
}

void Chain::xtc(const SamplingConfig& config, double chance) {
  if (items_.size() < 2 || config.xtc_threshold > 0.5 || chance >= config.xtc_probability) return;
  const double sum = total();
  std::size_t n = 0, least = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (weights_[i] / sum < config.xtc_threshold) continue;
    if (n == 0 || before(items_[least], items_[i])) least = i;
    ++n;
  }
  if (n < 2) return;
  const Candidate kept = items_[least];
  std::erase_if(items_, [&](const Candidate& c) { return before(c, kept); });
}

void Chain::surprise(double mu) {
  const double sum = total(), max = largest();
  const auto best = *std::ranges::min_element(items_, before);
  std::erase_if(items_, [&](const Candidate& c) {
    if (c.id == best.id) return false;
    const double p = exact_exp(c.logit - max) / sum;
    return p <= 0 || -math::log2_f64(p) > mu;
  });
}

std::int32_t Chain::best() const noexcept {
  return std::ranges::min_element(items_, before)->id;
}

std::span<const Candidate> Chain::sorted() {
  if (!sorted_) std::ranges::sort(items_, before);
  sorted_ = true;
  return items_;
}

std::span<const double> Chain::weights() {
  total();
  return weights_;
}

Chain::Drawn Chain::draw(double uniform) {
  const double sum = total(), max = largest();
  double cumulative = 0, weight = 0;
  std::size_t done = 0;
  for (std::size_t count = kFirstPrefix; done < items_.size(); count *= 8) {
    if (!sorted_) sort_prefix(items_, done, count, before);
    for (const std::size_t end = std::min(count, items_.size()); done < end; ++done) {
      weight = exact_exp(items_[done].logit - max);
      cumulative += weight;
      if (cumulative > uniform * sum) return {items_[done].id, weight / sum};
    }
  }
  return {items_.back().id, weight / sum};
}

}  // namespace cyb::text
