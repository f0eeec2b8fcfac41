// TokenHistory: the tokens of prompt and answer as penalties see them: how often each was seen
// (within the last n), and for DRY which token would go on with how long a repetition.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/sampler/sampling_config.hpp"

namespace cyb::text {

class TokenHistory {
 public:
  TokenHistory() = default;
  TokenHistory(const SamplingConfig& config, std::size_t vocab_size);

  /// Ids outside the vocabulary are not counted.
  void accept(std::int32_t id);
  void clear();
  /// Room for `n_tokens`, so that accept() does not allocate.
  void reserve(std::size_t n_tokens);

  /// How often `id` is among the last penalty_last_n tokens.
  std::uint32_t count(std::int32_t id) const noexcept {
    return counts_.empty() ? 0 : counts_[static_cast<std::size_t>(id)];
  }
  /// Finds the repetitions that end at the last token; see repetition().
  void find_repetitions();
  /// Length of the longest sequence before `id` that `id` would repeat once more; 0: none, or `id`
  /// is a sequence breaker. As of the last find_repetitions().
  std::uint32_t repetition(std::int32_t id) const noexcept {
    return repetitions_.empty() ? 0 : repetitions_[static_cast<std::size_t>(id)];
  }

 private:
  std::size_t breaker_distance(std::size_t n) const;
  void match_suffixes(std::size_t n, std::size_t limit);
  std::int32_t back(std::size_t i) const noexcept { return tokens_[tokens_.size() - 1 - i]; }

  std::size_t last_n_ = 0, dry_last_n_ = 0, allowed_length_ = 0;
  std::vector<DryBreaker> breakers_;        // ascending by head
  std::vector<std::int32_t> tokens_;        // empty where nobody looks back
  std::vector<std::uint32_t> counts_;       // [V] or empty
  std::vector<std::uint32_t> repetitions_;  // [V] or empty
  std::vector<std::int32_t> touched_;       // ids with a repetition
  std::vector<std::uint32_t> matches_;      // scratch: Z values of the reversed history
};

}  // namespace cyb::text
