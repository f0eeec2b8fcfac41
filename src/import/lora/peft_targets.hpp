// Which modules of a model an adapter_config.json names: target_modules, exclude_modules,
// layers_to_transform and layers_pattern, read as PEFT 0.21's check_target_module_exists does.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/regex/regex.hpp"

namespace cyb::lora {

/// Names of modules or ends of them after a dot; or one expression that fits the whole name.
struct ModuleNames {
  std::vector<std::string> ends;
  std::optional<text::Regex> whole;

  Result<bool> match(std::string_view module) const;
};

struct PeftTargets {
  std::optional<ModuleNames> targets;  // none: the kind of model decides, every module may be one
  ModuleNames excluded;
  std::vector<std::int64_t> layers;        // none: all
  std::vector<std::string> layers_before;  // names in front of a layer's number; none: any name

  /// PEFT would put A and B beside this module. Errors: Tokenizer where an expression explodes.
  Result<bool> names(std::string_view module) const;
};

/// Errors: L02 for a key of another type, or an expression that is none.
Result<PeftTargets> read_peft_targets(const nlohmann::json& config);

}  // namespace cyb::lora
