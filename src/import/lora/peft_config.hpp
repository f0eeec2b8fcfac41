// adapter_config.json of PEFT: what decides the scale of a pair, and the keys that change what an
// adapter computes, each refused by name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "import/lora/peft_targets.hpp"
#include "text/regex/regex.hpp"

namespace cyb::lora {

struct PeftConfig {
  double rank = 0, alpha = 0;
  bool rslora = false;  // alpha / sqrt(r) in place of alpha / r
  using Patterns = std::vector<std::pair<text::Regex, double>>;
  Patterns ranks, alphas;
  PeftTargets targets;

  /// Rank and alpha of a module: those of the pattern that names it or an end of it, else the
  /// common ones. Errors: L02 where two patterns of other values do.
  Result<double> rank_of(std::string_view module) const;
  Result<double> alpha_of(std::string_view module) const;
};

/// Errors: L02 (a key is missing or of another type), L04 (no LoRA), L05 (a kind of LoRA that
/// computes something else), L06 (weights beside A and B).
Result<PeftConfig> read_peft_config(const nlohmann::json& config);

}  // namespace cyb::lora
