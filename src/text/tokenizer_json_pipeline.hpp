// Second half of reading a tokenizer.json: which known pipeline its components are, exactly;
// anything else is refused.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/tokenizer_config.hpp"

namespace cyb::text {

/// Fills type, pre, nfc, space prefix, fallback and the like from `document`. Errors: NotBuilt with
/// the component's name.
Result<TokenizerConfig> recognise_pipeline(const nlohmann::json& document);

}  // namespace cyb::text
