// Sampler: logits to a token by the chain of spec ir.md section 5.8. No state but the set of seen
// ids, no allocation after construction; the same (seed, position, row, logits) gives the same
// token anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace cyb {

/// The `[sampling]` keys. Order of the chain: repetition penalty, temperature, top-k, softmax,
/// top-p, min-p, draw.
struct SamplingConfig {
  double temperature = 0.0;         // 0 = greedy
  std::uint32_t top_k = 0;          // 0 = off
  double top_p = 1.0;               // (0, 1]; 1 = off
  double min_p = 0.0;               // [0, 1); 0 = off
  double repetition_penalty = 1.0;  // > 0; 1 = off
  std::uint64_t seed = 0;           // as given: 0 is a seed like any other here
};

struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0.0F;  // natural logarithm
};

class Sampler {
 public:
  /// Errors: InvalidConfig "sampling.<key>" for a value outside its range.
  static Result<Sampler> create(const SamplingConfig& config, std::int32_t vocab_size);

  /// Counts `id` as seen for the repetition penalty: call it for each id of the prompt and of the
  /// answer.
  void accept(std::int32_t id);
  /// Forgets the seen ids.
  void reset();

  /// logits [V], not changed. `position`: index of the sampled token in the sequence (prompt
  /// included); `row`: number of the answer within its request. Errors: NonFinite with the index.
  Result<std::int32_t> sample(std::span<const float> logits, std::uint32_t position,
                              std::uint32_t row = 0);

  /// The `top.size()` most likely tokens of the raw distribution (no penalty, no temperature), by
  /// (logprob desc, id asc), into `top`; returns the log-probability of `chosen`. Errors:
  /// NonFinite, InvalidInput.
  Result<float> logprobs(std::span<const float> logits, std::int32_t chosen,
                         std::span<TokenLogprob> top);

  const SamplingConfig& config() const noexcept { return config_; }

 private:
  Sampler(const SamplingConfig& config, std::int32_t vocab_size);
  std::span<const float> penalised(std::span<const float> logits);
  void select(std::span<const float> logits, std::size_t count);
  std::int32_t draw(std::span<const float> logits, float max, float uniform);
  std::size_t kept(double total, bool whole) const;

  SamplingConfig config_;
  std::int32_t vocab_size_;
  std::vector<std::int32_t> seen_;  // distinct ids, in order of appearance
  std::vector<std::uint64_t> seen_bits_;
  std::vector<float> work_;          // [V] penalised logits; empty while the penalty is off
  std::vector<std::uint64_t> best_;  // candidates: ordered key << 32 | id
  std::vector<double> weight_;       // exp((logit - max) / temperature) of the candidates, sorted
};

}  // namespace cyb
