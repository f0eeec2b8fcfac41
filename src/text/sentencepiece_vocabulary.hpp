// The vocabulary of a sentencepiece model as TokenizerParts; the reader of the file lives in
// import/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_config.hpp"

namespace cyb {

struct SentencePieceEntry {
  std::string_view text;
  float score = 0;
  std::int32_t type = 1;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte
};

/// The fields of a ModelProto that change ids, with their defaults (sentencepiece_model.proto).
struct SentencePieceSource {
  std::vector<SentencePieceEntry> pieces;
  std::int32_t model_type = 1;  // 1 unigram, 2 bpe, 3 word, 4 char
  bool byte_fallback = false, treat_whitespace_as_suffix = false;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool has_denormalizer = false;
  std::string_view charsmap;
  std::string_view bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
};

/// No BOS and no EOS is added: the file does not say. Errors: F34, NotBuilt by name.
Result<TokenizerParts> vocabulary_from_sentencepiece(const SentencePieceSource& source);

}  // namespace cyb
