// The vocabulary of a GGUF file (keys tokenizer.ggml.*) as TokenizerParts; the reader of the file
// lives in import/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "text/tokenizer_config.hpp"

namespace cyb {

/// Views of the file's arrays, valid during the call only. An absent key is an empty view or
/// nullopt.
struct GgufVocabulary {
  std::string_view model;                     // tokenizer.ggml.model: "gpt2", "llama", "bert"...
  std::string_view pre;                       // tokenizer.ggml.pre
  std::span<const std::string_view> tokens;   // [V]
  std::span<const float> scores;              // [V] or empty
  std::span<const std::int32_t> token_types;  // [V] or empty
  std::span<const std::string_view> merges;   // "left right"
  std::optional<std::int64_t> bos_id, eos_id, eot_id, eom_id, unk_id, pad_id;
  std::optional<std::int64_t> cls_id, sep_id;
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix;
  std::optional<bool> remove_extra_whitespaces, lowercase, strip_accents;
  std::string_view charsmap;  // tokenizer.ggml.precompiled_charsmap: bytes
};

/// Defaults of absent keys are llama.cpp's. Errors: F34, G codes of G09, NotBuilt for an unknown
/// model or pre.
Result<TokenizerParts> vocabulary_from_gguf(const GgufVocabulary& source);

}  // namespace cyb
