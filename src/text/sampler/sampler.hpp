// Sampler: logits to a token. The chain of spec ir.md section 5.8 by growing selections, any other
// order and filter by text::Chain. State: the tokens seen, and mirostat's target; no allocation
// after construction and reserve(); the same (seed, position, row, history, logits) gives the same
// token anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "text/sampler/chain.hpp"
#include "text/sampler/sampling_config.hpp"

namespace cyb {

struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0.0F;  // natural logarithm
};

class Sampler {
 public:
  /// Errors: InvalidConfig "sampling.<key>" for a value outside its range.
  static Result<Sampler> create(const SamplingConfig& config, std::int32_t vocab_size);

  /// Counts `id` as seen for the penalties: call it for each id of the prompt and of the answer.
  void accept(std::int32_t id);
  /// Forgets the seen ids; mirostat begins anew.
  void reset();
  /// Room for a history of `n_tokens`.
  void reserve(std::size_t n_tokens);

  /// logits [V], not changed. `position`: index of the sampled token in the sequence (prompt
  /// included); `row`: number of the answer within its request. Draws: Philox counter (position, 0,
  /// 0, row), for XTC (position, 1, 0, row). Once per position, as mirostat learns from it.
  /// `allowed`: one bit per token, 64 to a word; a token of bit 0 is as if it did not exist; empty:
  /// all are allowed. Errors: NonFinite with the index, InvalidInput where a bias or `allowed` bans
  /// every token.
  Result<std::int32_t> sample(std::span<const float> logits, std::uint32_t position,
                              std::uint32_t row = 0, std::span<const std::uint64_t> allowed = {});

  struct TokenProbability {
    std::int32_t id;
    double probability;
  };
  /// What sample() draws from, by (probability desc, id asc); changes nothing but scratch memory.
  /// Errors: as sample().
  Result<std::vector<TokenProbability>> distribution(std::span<const float> logits,
                                                     std::uint32_t position, std::uint32_t row = 0,
                                                     std::span<const std::uint64_t> allowed = {});

  /// The `top.size()` most likely tokens of the raw distribution (no penalty, no temperature), by
  /// (logprob desc, id asc), into `top`; returns the log-probability of `chosen`. Errors:
  /// NonFinite, InvalidInput.
  Result<float> logprobs(std::span<const float> logits, std::int32_t chosen,
                         std::span<TokenLogprob> top);

  const SamplingConfig& config() const noexcept { return config_; }

 private:
  Sampler(SamplingConfig config, std::int32_t vocab_size);
  Result<void> check_logits(std::span<const float> logits) const;
  Result<void> check_allowed(std::span<const std::uint64_t> allowed) const;
  Result<void> run_chain(std::span<const float> logits, std::uint32_t position, std::uint32_t row,
                         std::span<const std::uint64_t> allowed);
  Result<std::int32_t> sample_chain(std::span<const float> logits, std::uint32_t position,
                                    std::uint32_t row, std::span<const std::uint64_t> allowed);
  std::span<const float> only_allowed(std::span<const float> logits,
                                      std::span<const std::uint64_t> allowed);
  std::span<const float> penalised(std::span<const float> logits);
  void select(std::span<const float> logits, std::size_t count);
  std::int32_t draw(std::span<const float> logits, float max, float uniform);
  std::size_t kept(double total, bool whole) const;

  SamplingConfig config_;
  std::int32_t vocab_size_;
  bool plain_;                      // the chain of the spec; what follows up to history_ is its own
  std::vector<std::int32_t> seen_;  // distinct ids, in order of appearance
  std::vector<std::uint64_t> seen_bits_;
  std::vector<float> work_;          // [V] penalised logits; empty while the penalty is off
  std::vector<float> masked_;        // [V] -inf where not allowed; empty until it is used
  std::vector<std::uint64_t> best_;  // candidates: ordered key << 32 | id
  std::vector<double> weight_;       // exp((logit - max) / temperature) of the candidates, sorted
  std::vector<SamplerKind> active_;
  text::TokenHistory history_;
  text::Chain chain_;
  double mirostat_mu_ = 0;
};

}  // namespace cyb
