// What the text layer needs from a `.model`: [tokenizer] and the vocab part as TokenizerParts, and
// the ids that end an answer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb {

/// `[tokenizer]` of a config; a config without one is a model of ids. bos_id, eos_id, pad_id and
/// eos_token_id are read as synonyms. Errors: F31, InvalidConfig, NotBuilt for a known type that
/// does not exist yet.
Result<TokenizerConfig> read_tokenizer_config(const ConfigTable& config);

/// Errors: as above, F34.
Result<TokenizerParts> tokenizer_parts(const Model& model);
Result<TokenizerParts> tokenizer_parts(const ConfigTable& config, const VocabData& vocab);

}  // namespace cyb
