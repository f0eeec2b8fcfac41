// Chain: candidates of one step and the filters on them, each with the formula of its source. The
// candidates are in the order of their ids, or sorted by (logit desc, id asc): every sum runs in
// one of these orders, so that the same logits give the same bits on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/sampler/sampling_config.hpp"
#include "text/sampler/token_history.hpp"

namespace cyb::text {

struct Candidate {
  double logit;
  std::int32_t id;
};

class Chain {
 public:
  Chain() = default;
  explicit Chain(std::size_t vocab_size);

  /// All tokens with their raw logits plus `bias`; a token of bias -inf is no candidate, nor one
  /// whose bit in `allowed` is 0 (empty: all are allowed). False: none is left.
  bool load(std::span<const float> logits, std::span<const LogitBias> bias,
            std::span<const std::uint64_t> allowed = {});

  /// l' = l R for l < 0, l / R else (Keskar et al. 2019, with the sign rule of transformers'
  /// RepetitionPenaltyLogitsProcessor); then l' - count * frequency - presence (OpenAI's
  /// definition). Only tokens that were seen.
  void penalties(const SamplingConfig& config, const TokenHistory& history);
  /// l' = l - multiplier * base^(length - allowed_length) for a token that would go on with a
  /// repetition of `length` >= allowed_length tokens (p-e-w's DRY, as llama.cpp has it: the power
  /// stays below the largest f32).
  void dry(const SamplingConfig& config, TokenHistory& history);
  /// l' = l / T. With a range r > 0 (dynamic temperature, llama.cpp's temp_ext): T = lo + (hi - lo)
  /// * (entropy / ln n)^exponent over n candidates, lo = max(0, T - r), hi = T + r.
  void temperature(const SamplingConfig& config);
  /// Keeps l >= max - n * sigma, sigma the standard deviation of the logits (Tang et al. 2024).
  void top_n_sigma(double n);
  /// Keeps the k largest; ties go to the lower id.
  void top_k(std::size_t k);
  /// Keeps the shortest sorted prefix whose probabilities sum to p or more (Holtzman et al. 2019).
  void top_p(double p);
  /// Keeps tokens at least p times as likely as the best (Nguyen et al. 2024).
  void min_p(double p);
  /// Sorted by |-ln p_i - entropy|, ties as the candidates: keeps the shortest prefix whose
  /// probabilities sum to p or more (Meister et al. 2022, as transformers' TypicalLogitsWarper).
  void typical(double p);
  /// Where `chance` < probability: removes all tokens that have probability >= threshold but the
  /// least likely of them (p-e-w's XTC, as llama.cpp has it).
  void xtc(const SamplingConfig& config, double chance);
  /// Keeps tokens whose surprise -log2 p is at most `mu`, the best in any case (Basu et al. 2020,
  /// Mirostat 2.0 as llama.cpp has it).
  void surprise(double mu);

  /// Index of the largest logit, the lowest id among equals.
  std::int32_t best() const noexcept;
  struct Drawn {
    std::int32_t id;
    double probability;
  };
  /// The first in sorted order whose cumulative probability exceeds `uniform`, else the last.
  Drawn draw(double uniform);
  /// All candidates sorted, with what draw() takes their probabilities from.
  std::span<const Candidate> sorted();
  /// exp(logit - max) of each candidate, in their order.
  std::span<const double> weights();

 private:
  double largest() const noexcept;
  double total();
  double entropy(double sum) const noexcept;
  void keep_only(std::size_t at);

  std::vector<Candidate> items_;
  std::vector<double> weights_;
  std::vector<Candidate> scored_;  // typical: logit is the score, id the place in items_
  bool sorted_ = false;
};

}  // namespace cyb::text
