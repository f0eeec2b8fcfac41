// Options of one answer: length, sampling, stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "runtime/generation.hpp"

namespace cyb::cli {

class SamplingFlags {
 public:
  void declare(Options& options);
  /// Errors: Usage for a stop that is not UTF-8, and for --logprobs without `json`.
  Result<void> check(bool json) const;
  /// Given options that change nothing with this model's defaults, for a note.
  std::vector<std::string> without_effect(const SamplingDefaults& defaults) const;
  /// Names of all options that were given.
  std::vector<std::string> given() const;
  GenerateOptions generate_options() const;
  bool has_token_limit() const noexcept { return max_tokens_.has_value(); }

 private:
  std::optional<std::uint64_t> max_tokens_, top_k_, seed_, logprobs_;
  std::optional<double> temperature_, top_p_, min_p_, repetition_penalty_;
  std::vector<std::string> stops_;
};

}  // namespace cyb::cli
