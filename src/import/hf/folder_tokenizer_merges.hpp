// A Hugging Face folder whose tokenizer is vocab.json and merges.txt: the tokenizer.json that the
// tokenizer's class makes of them.
#pragma once

#include <string>

#include "text/tokenizer_config.hpp"

namespace cyb::hf {

/// Both files are there.
bool has_merges(const std::string& folder);

/// Byte-level BPE with the pre-tokenizer of the class that tokenizer_config.json (or, without one,
/// config.json's model_type) names, and the added tokens of added_tokens_decoder or
/// added_tokens.json. Errors: Format, InvalidConfig; NotBuilt for a class that is not known.
Result<TokenizerParts> read_merges_folder(const std::string& folder);

}  // namespace cyb::hf
