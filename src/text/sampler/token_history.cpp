// Repetitions by the Z algorithm on the reversed history: linear in the tokens looked back at.
#include "text/sampler/token_history.hpp"

#include <algorithm>

namespace cyb::text {

TokenHistory::TokenHistory(const SamplingConfig& config, std::size_t vocab_size)
    : last_n_(config.penalty_last_n),
      dry_last_n_(config.dry_last_n),
      allowed_length_(config.dry_allowed_length),
      breakers_(config.dry_breakers) {
  const std::vector<SamplerKind> active = active_samplers(config);
  const auto acts = [&](SamplerKind kind) {
    return std::ranges::find(active, kind) != active.end();
  };
  if (acts(SamplerKind::kPenalties)) counts_.assign(vocab_size, 0);
  if (acts(SamplerKind::kDry)) repetitions_.assign(vocab_size, 0);
  std::ranges::stable_sort(breakers_, {}, &DryBreaker::head);
}

void TokenHistory::reserve(std::size_t n_tokens) {
  if (!repetitions_.empty() || last_n_ != 0) tokens_.reserve(n_tokens);
  if (repetitions_.empty()) return;
  matches_.reserve(n_tokens);
  touched_.reserve(n_tokens);
}

void TokenHistory::accept(std::int32_t id) {
  const std::size_t vocab = std::max(counts_.size(), repetitions_.size());
  if (id < 0 || static_cast<std::size_t>(id) >= vocab) return;
  if (!counts_.empty()) ++counts_[static_cast<std::size_t>(id)];
  if (repetitions_.empty() && last_n_ == 0) return;
  tokens_.push_back(id);
  if (counts_.empty() || last_n_ == 0 || tokens_.size() <= last_n_) return;
  --counts_[static_cast<std::size_t>(back(last_n_))];
}

void TokenHistory::clear() {
  tokens_.clear();
  std::ranges::fill(counts_, 0);
  std::ranges::fill(repetitions_, 0);
  touched_.clear();
}

/// Tokens after the last breaker, at most `n`: no repetition is longer.
std::size_t TokenHistory::breaker_distance(std::size_t n) const {
  for (std::size_t i = 0; i < n; ++i) {
    std::ptrdiff_t longest = -1;
    const auto [first, last] = std::ranges::equal_range(breakers_, back(i), {}, &DryBreaker::head);
    for (auto breaker = first; breaker != last; ++breaker) {
      const std::vector<std::int32_t>& tail = breaker->tail;
      bool same = tail.size() <= i;
      for (std::size_t k = 0; same && k < tail.size(); ++k) same = tail[k] == back(i - k - 1);
      if (same) longest = std::max(longest, static_cast<std::ptrdiff_t>(tail.size()));
    }
    if (longest >= 0) return i - static_cast<std::size_t>(longest);
  }
  return n;
}

/// matches_[k]: how many tokens before and with the one k back equal the last ones, at most
/// `limit`.
void TokenHistory::match_suffixes(std::size_t n, std::size_t limit) {
  matches_.assign(n, 0);
  std::size_t left = 0, right = 0;  // the match that reaches farthest back: [left, right)
  for (std::size_t k = 1; k < n; ++k) {
    std::size_t length = 0;
    if (k < right) length = std::min<std::size_t>(right - k, matches_[k - left]);
    while (k + length < n && back(length) == back(k + length)) ++length;
    matches_[k] = static_cast<std::uint32_t>(length);
    if (k + length > right) {
      left = k;
      right = k + length;
    }
  }
  for (std::uint32_t& length : matches_)
    length = static_cast<std::uint32_t>(std::min<std::size_t>(length, limit));
}

void TokenHistory::find_repetitions() {
  for (const std::int32_t id : touched_) repetitions_[static_cast<std::size_t>(id)] = 0;
  touched_.clear();
  const std::size_t n = dry_last_n_ == 0 ? tokens_.size() : std::min(tokens_.size(), dry_last_n_);
  if (n <= allowed_length_) return;
  const std::size_t limit = breaker_distance(n);
  if (limit < allowed_length_) return;
  match_suffixes(n, limit);
  for (std::size_t k = 1; k < n; ++k) {
    if (matches_[k] < allowed_length_) continue;
    const std::int32_t next = back(k - 1);
    std::uint32_t& longest = repetitions_[static_cast<std::size_t>(next)];
    if (longest == 0) touched_.push_back(next);
    longest = std::max(longest, matches_[k]);
  }
  for (const std::int32_t id : touched_) {
    const auto [first, last] = std::ranges::equal_range(breakers_, id, {}, &DryBreaker::head);
    const bool single =
        std::any_of(first, last, [](const DryBreaker& b) { return b.tail.empty(); });
    if (single) repetitions_[static_cast<std::size_t>(id)] = 0;
  }
}

}  // namespace cyb::text
