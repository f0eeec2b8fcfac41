// TokenizerConfig: the [tokenizer] keys of a model, and TokenizerParts: all that a Tokenizer is
// made from. Whatever the source was (GGUF, tokenizer.json, .model), it becomes this; what cannot
// be said here is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace cyb {

enum class TokenizerKind : std::uint8_t {
  kBpe,        // byte-level BPE (model-format 7.2); with a pipeline BPE of any kind (7.8)
  kSpm,        // SentencePiece BPE (7.4)
  kUnigram,    // Viterbi over piece scores (7.8); always with a pipeline, as the next two
  kWordPiece,  // (7.5)
  kWordLevel,
  kNone,  // a model of ids: no text
};

enum class PreTokenizer : std::uint8_t { kNone, kGpt2, kSmollm, kQwen2, kLlama3 };

/// Where SentencePiece text gets its added space (add_space_prefix = true).
enum class SpacePrefix : std::uint8_t {
  kEverySegment,         // in front of each text between special tokens (GGUF llama, HF Prepend)
  kFirstSegment,         // only at the very start, unless a space is there (HF Metaspace "first")
  kEverySegmentMissing,  // each text that does not start with a space (HF Metaspace "always")
};

/// Keys of `[tokenizer]` in the config part (spec model-format 4.4); key = field name where not
/// said otherwise.
struct TokenizerConfig {
  TokenizerKind type = TokenizerKind::kNone;  // "bpe", "spm", "unigram", "wordpiece", ...
  PreTokenizer pre = PreTokenizer::kNone;     // "none", "gpt2", "smollm", "qwen2", "llama3"
  std::optional<std::int32_t> bos_token_id, pad_token_id, unk_token_id;
  std::vector<std::int32_t> eos_token_ids;
  bool add_bos_token = false;
  bool add_eos_token = false;
  bool add_space_prefix = false;                          // spm
  SpacePrefix space_prefix = SpacePrefix::kEverySegment;  // "every", "first", "missing"
  bool split_words = false;    // spm: no merge across a word start (HF Metaspace with split)
  bool byte_fallback = false;  // spm; then all 256 <0xNN> tokens must exist
  bool fuse_unk = false;       // a run of unknown symbols becomes one unk
  bool ignore_merges = false;  // bpe: a piece that is a token is that token (Llama 3)
  bool nfc = false;            // text is NFC-normalised first (Qwen2)
  /// [tokenizer.pipeline] as JSON, "" where type and pre say it all; then pre and nfc are not used.
  std::string pipeline;
};

/// What a preset's own checkpoints use: nfc of qwen2, ignore_merges of llama3; spm: space prefix
/// and byte fallback.
TokenizerConfig tokenizer_preset(TokenizerKind type, PreTokenizer pre);

std::string_view tokenizer_kind_name(TokenizerKind kind) noexcept;
std::string_view pre_tokenizer_name(PreTokenizer pre) noexcept;
std::string_view space_prefix_name(SpacePrefix mode) noexcept;
/// Errors: InvalidConfig naming the value.
Result<TokenizerKind> parse_tokenizer_kind(std::string_view name);
Result<PreTokenizer> parse_pre_tokenizer(std::string_view name);
Result<SpacePrefix> parse_space_prefix(std::string_view name);

struct TokenizerParts {
  TokenizerConfig config;
  Vocabulary vocabulary;  // finished
  std::vector<MergePair>
      merges;  // by rank. bpe: required. spm: if given, ranks decide; else scores do
  std::vector<std::int32_t>
      special_ids;  // [special].ids; types 3 and 4 are special without being listed
  std::vector<std::string>
      assumptions;  // what the source did not say, for people; not used by the tokenizer
};

}  // namespace cyb
