// Reads a Hugging Face tokenizer.json. Only pipelines that are known to be equal to what is built
// here are accepted; every other component or field is refused by name, never skipped.
#pragma once

#include <string_view>

#include "text/tokenizer_config.hpp"

namespace cyb {

/// `text`: the whole file. Streaming: memory stays in proportion to the vocabulary.
/// Errors: Format "tokenizer.json: ..."; NotBuilt "tokenizer.json: <component> ..." for what is not
/// built. bos_token_id comes from the post-processor (if it adds one); eos_token_ids and pad are
/// for the caller to set.
Result<TokenizerParts> read_tokenizer_json(std::string_view text);

}  // namespace cyb
