// tiktoken rank files: a base64 text and its rank a line. The file says nothing of the expression
// that cuts the text nor of special tokens: both go by the encoding's name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_config.hpp"

namespace cyb {

/// Names of the encodings: cl100k_base, o200k_base...
std::vector<std::string_view> tiktoken_encodings();
/// The first line is one of a rank file.
bool looks_like_tiktoken(std::string_view text) noexcept;

/// `encoding`: one of the names. Errors: Format "tiktoken: ..." with the line, F34, InvalidInput
/// for a name that is not known.
Result<TokenizerParts> vocabulary_from_tiktoken(std::string_view text, std::string_view encoding);

}  // namespace cyb
