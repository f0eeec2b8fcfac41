// SamplingConfig: the samplers of one answer, their values and their order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb {

/// The samplers in their default order: that of spec ir.md section 5.8 for penalties, temperature,
/// top_k, top_p, min_p; typical follows them as in transformers. A logit bias comes before all.
enum class SamplerKind : std::uint8_t {
  kPenalties,
  kDry,
  kTemperature,
  kTopNSigma,
  kTopK,
  kTopP,
  kMinP,
  kTypical,
  kXtc,
  kMirostat,
};
inline constexpr std::size_t kNumSamplers = 10;

/// "penalties", "dry", "temperature", "top_n_sigma", "top_k", "top_p", "min_p", "typical", "xtc",
/// "mirostat".
std::string_view sampler_name(SamplerKind kind) noexcept;
std::optional<SamplerKind> find_sampler(std::string_view name) noexcept;
/// All of them in the default order.
std::span<const SamplerKind> default_samplers() noexcept;

struct LogitBias {
  std::int32_t id = 0;
  double bias = 0;  // added to the raw logit; -inf: never
};

/// Tokens that end a repetition for DRY: `head`, with `tail` after it.
struct DryBreaker {
  std::int32_t head = 0;
  std::vector<std::int32_t> tail{};
};

/// Values of all samplers; each is off at the value given here.
struct SamplingConfig {
  double temperature = 0.0;  // 0 = greedy
  // Dynamic temperature: temperature +- range by entropy.
  double temperature_range = 0.0, temperature_exponent = 1.0;
  std::uint32_t top_k = 0;
  double top_p = 1.0;                    // (0, 1]
  double min_p = 0.0;                    // [0, 1)
  double typical_p = 1.0;                // (0, 1]
  double top_n_sigma = 0.0;              // >= 0
  double xtc_probability = 0.0;          // [0, 1]
  double xtc_threshold = 0.1;            // [0, 1]; above 0.5 nothing can happen
  double repetition_penalty = 1.0;       // > 0
  double presence_penalty = 0.0;         // subtracted from the logit of a token that was seen
  double frequency_penalty = 0.0;        // the same, times how often
  std::uint32_t penalty_last_n = 0;      // tokens that the penalties look back at; 0: all
  double dry_multiplier = 0.0;           // >= 0
  double dry_base = 1.75;                // >= 1
  std::uint32_t dry_allowed_length = 2;  // >= 1: longest repetition without a penalty is one less
  std::uint32_t dry_last_n = 0;          // tokens that DRY looks back at; 0: all
  std::vector<DryBreaker> dry_breakers{};
  double mirostat_tau = 0.0;  // wanted surprise in bits; 0 = off
  double mirostat_eta = 0.1;  // learning rate, > 0
  std::vector<LogitBias> logit_bias{};
  std::vector<SamplerKind> order{};  // empty: the default one; samplers that are not in it are off
  std::uint64_t seed = 0;            // as given: 0 is a seed like any other here
};

/// Errors: InvalidConfig "sampling.<key>" for a value outside its range, a sampler twice in the
/// order, mirostat before another.
Result<void> check_sampling(const SamplingConfig& config);
/// The samplers that do something, in their order.
std::vector<SamplerKind> active_samplers(const SamplingConfig& config);
/// Only penalties by repetition over everything, temperature, top-k, top-p and min-p, in the
/// default order.
bool is_plain_chain(const SamplingConfig& config);

}  // namespace cyb
