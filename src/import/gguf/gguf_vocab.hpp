// The tokenizer.* keys of a GGUF file to TokenizerParts.
#pragma once

#include "import/gguf/metadata.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb::gguf {

/// A file without tokenizer.ggml.model is a model of ids (type none).
/// Errors: InvalidConfig and F34 naming the key; what the text layer refuses.
Result<TokenizerParts> read_vocabulary(Metadata& metadata);

}  // namespace cyb::gguf
