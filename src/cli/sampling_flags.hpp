// Options of one answer: length, sampling, stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.hpp"
#include "runtime/generation.hpp"

namespace cyb::cli {

class SamplingFlags {
 public:
  void declare(Options& options);
  /// Errors: Usage for a text that is not UTF-8, a bias or list of samplers that cannot be read, a
  /// value of a sampler that --samplers does not list, and for --logprobs without `json`.
  Result<void> check(bool json) const;
  /// Given options that change nothing with this model's defaults, for a note.
  std::vector<std::string> without_effect(const SamplingDefaults& defaults) const;
  /// Given options that need another one: "--dry-base" without --dry-multiplier.
  std::vector<std::string> without_partner(const SamplingDefaults& defaults) const;
  /// Names of all options that were given.
  std::vector<std::string> given() const;
  GenerateOptions generate_options() const;
  bool has_token_limit() const noexcept { return max_tokens_.has_value(); }

 private:
  void declare_filters(Options& options);
  void declare_penalties(Options& options);
  SamplingOverrides overrides() const;

  std::optional<std::uint64_t> max_tokens_, top_k_, seed_, logprobs_;
  std::optional<std::uint64_t> penalty_last_n_, dry_allowed_length_, dry_last_n_;
  std::optional<double> temperature_, temperature_range_, temperature_exponent_;
  std::optional<double> top_p_, min_p_, typical_p_, top_n_sigma_, xtc_probability_, xtc_threshold_;
  std::optional<double> repetition_penalty_, presence_penalty_, frequency_penalty_;
  std::optional<double> dry_multiplier_, dry_base_, mirostat_tau_, mirostat_eta_;
  std::optional<std::string> samplers_;
  std::vector<std::string> stops_, dry_breakers_, logit_biases_;
};

/// "ID=V", or "TEXT=V" for a token by its text (in double quotes where that is a number); V may be
/// -inf. Errors: Usage.
Result<BiasRequest> read_logit_bias(std::string_view text);

}  // namespace cyb::cli
