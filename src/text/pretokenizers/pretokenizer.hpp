// Pre-tokenizers: where a text is cut into pieces before byte-level BPE (spec model-format 7.3).
// The five regular expressions are written as scanners: one pass, no backtracking, no stack, equal
// to the expressions on every text.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer_config.hpp"

namespace cyb::text {

/// End of the piece that starts at byte `at` (< text.size()). `text` must be valid UTF-8.
using NextPiece = std::size_t (*)(std::string_view text, std::size_t at);

NextPiece next_piece(PreTokenizer pre) noexcept;

/// Llama 3's piece without the alternatives for white space, which is 0.
std::size_t llama3_word(std::string_view text, std::size_t at);

}  // namespace cyb::text
