// A Hugging Face folder whose tokenizer is a sentencepiece model: what the tokenizer's class adds
// to the model's own pieces.
#pragma once

#include <string>

#include "text/tokenizer_config.hpp"

namespace cyb::hf {

/// Path of tokenizer.model or spiece.model; "" where neither is there.
std::string sentencepiece_of(const std::string& folder);

/// The model, the added tokens that tokenizer_config.json or added_tokens.json list, and BOS and
/// EOS as the class of the tokenizer adds them. Errors: Format, InvalidConfig; NotBuilt for a class
/// that is not known to keep the model's ids.
Result<TokenizerParts> read_sentencepiece_folder(const std::string& folder,
                                                 const std::string& model);

/// BOS and EOS of the class where tokenizer_config.json says nothing of them.
Result<void> keep_class_flags(const std::string& folder, const TokenizerConfig& made,
                              TokenizerConfig& config);

}  // namespace cyb::hf
