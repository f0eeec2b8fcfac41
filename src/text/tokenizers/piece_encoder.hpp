// PieceEncoder: one piece of text (a word, or whatever the pre-tokenizer leaves together) to ids by
// BPE. Three rules of priority: byte-level merges by rank, SentencePiece merges by rank,
// SentencePiece merges by score.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer_config.hpp"
#include "text/tokenizers/merge_table.hpp"
#include "text/tokenizers/merging.hpp"
#include "text/tokenizers/text_index.hpp"

namespace cyb::text {

class Decoding;

/// Buffers of one encode() call.
struct EncodeScratch {
  MergeScratch merge;
  std::vector<std::int32_t> ids;
  std::size_t unk_from =
      0;  // unknown symbols are fused only with those from this place of `ids` on
};

/// What a pipeline changes in the encoding of a piece.
struct PieceShape {
  bool chars = false;          // bpe over the characters of a piece, not over its bytes
  std::string word_prefix;     // chars: what a token that continues a word starts with ("##")
  std::string word_suffix;     // chars: what a token that ends a word ends with ("</w>")
  bool ranks_are_ids = false;  // bytes: what joins to a token, the lowest id first
};

/// The bytes of all tokens, as text stands for them: mapped back (bpe), U+2581 as a space (spm),
/// byte tokens as bytes.
class PieceTable {
 public:
  /// `decoding`: what a pipeline's decoder makes of a token that is not the first; or null.
  void build(const Vocabulary& vocabulary, TokenizerKind kind, const Decoding* decoding = nullptr);
  std::string_view piece(std::int32_t id) const noexcept {
    const std::size_t i = static_cast<std::size_t>(id);
    return std::string_view(blob_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  std::size_t max_bytes() const noexcept { return max_bytes_; }

 private:
  std::string blob_;
  std::vector<std::uint32_t> offsets_;
  std::size_t max_bytes_ = 0;
};

class PieceEncoder {
 public:
  /// `vocabulary` and `pieces` must outlive this. Errors: F34, Tokenizer.
  Result<void> build(const TokenizerConfig& config, const Vocabulary& vocabulary,
                     const PieceTable& pieces, std::span<const MergePair> merges,
                     PieceShape shape = {});

  /// Appends the ids of `piece` (bpe: bytes of text; spm: text with U+2581 for spaces) to
  /// scratch.ids. Errors: Tokenizer for a symbol without a token.
  Result<void> encode(std::string_view piece, EncodeScratch& scratch) const;

  /// spm: true if no token holds the character that ends with byte `before` next to the one at
  /// `after`, so that text may be cut between them: no merge reaches across.
  bool may_cut(unsigned char before, std::string_view after) const noexcept {
    if (after.starts_with("\xE2\x96\x81")) return !joins_space_[before];
    return !joins_[static_cast<std::size_t>(before) << 8 | static_cast<unsigned char>(after[0])];
  }

 private:
  Result<void> check_byte_tokens();
  void find_joins();
  Result<void> index_pieces();
  std::int32_t whole_token(std::string_view piece) const noexcept;
  void split(std::string_view piece, std::vector<Symbol>& symbols) const;
  void split_chars(std::string_view piece, std::vector<Symbol>& symbols) const;
  void merge(std::string_view piece, MergeScratch& scratch) const;
  Result<void> emit(std::string_view piece, EncodeScratch& scratch) const;
  Result<void> emit_missing(std::string_view bytes, EncodeScratch& scratch) const;

  const TokenizerConfig* config_ = nullptr;
  const Vocabulary* vocabulary_ = nullptr;
  const PieceTable* pieces_ = nullptr;
  PieceShape shape_;
  bool by_rank_ = true;
  bool bytes_ = true;  // symbols are bytes
  MergeTable merges_;
  std::array<std::int32_t, 256> byte_ids_{};  // bpe: the symbol of a byte; spm: its <0xNN> token
  std::array<bool, 256> joins_space_{};       // a byte before U+2581 in some token
  std::bitset<65536> joins_;  // last byte of a character << 8 | first byte of the next
  TextIndex by_bytes_;        // bpe: normal tokens by their bytes
  std::size_t max_bytes_ = 0;
  // Whether the merges lead from a token's own text to that token: 0 not known yet, 1 yes, 2 no. A
  // cache that only saves time: every thread would store the same value.
  mutable std::unique_ptr<std::atomic<std::uint8_t>[]> reached_;
};

}  // namespace cyb::text
