// Vocabulary: token texts, types and scores by id. One blob of bytes plus 32-bit offsets, and an
// open-addressing hash of ids over the blob: a 262k vocabulary costs little more than its own bytes
// and is built in a few milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/vocab_data.hpp"
#include "text/tokenizers/text_index.hpp"

namespace cyb {

struct TokenEntry {
  std::string_view text;
  TokenType type = TokenType::kNormal;
  float score = 0.0F;
};

class Vocabulary {
 public:
  void reserve(std::size_t n_tokens, std::size_t n_text_bytes);

  /// Appends the token of the next id. Errors: limits on the number of tokens and on their bytes.
  Result<void> add(const TokenEntry& entry);

  /// All tokens of a vocab part at once. Errors: as add().
  Result<void> assign(const VocabData& data);

  /// Builds the hash; call once after the last add(). Errors: F34 for two equal texts (unused
  /// tokens aside).
  Result<void> finish();

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(types_.size()); }
  bool contains(std::int32_t id) const noexcept { return id >= 0 && id < size(); }

  /// The text as the file gives it (byte-level BPE: in its mapped alphabet). `id` must be
  /// contained.
  std::string_view text(std::int32_t id) const noexcept {
    const std::size_t i = static_cast<std::size_t>(id);
    return std::string_view(blob_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  TokenType type(std::int32_t id) const noexcept {
    return static_cast<TokenType>(types_[static_cast<std::size_t>(id)]);
  }
  float score(std::int32_t id) const noexcept {
    return scores_.empty() ? 0.0F : scores_[static_cast<std::size_t>(id)];
  }
  /// True if any token was added with a score other than 0.
  bool has_scores() const noexcept { return !scores_.empty(); }
  void set_type(std::int32_t id, TokenType type) noexcept {
    types_[static_cast<std::size_t>(id)] = static_cast<std::uint8_t>(type);
  }

  /// Id of the token with exactly this text (unused tokens are never found), or -1. Valid after
  /// finish().
  std::int32_t find(std::string_view text) const noexcept;

  std::size_t max_text_bytes() const noexcept { return max_text_bytes_; }

 private:
  std::string blob_;
  std::vector<std::uint32_t> offsets_{0};  // [size + 1]
  std::vector<std::uint8_t> types_;
  std::vector<float> scores_;  // empty while all are 0
  text::TextIndex index_;
  std::size_t max_text_bytes_ = 0;
};

/// One merge rule: the tokens `left` and `right` become the token with the joined text. Rank =
/// place in the list.
struct MergePair {
  std::int32_t left = 0;
  std::int32_t right = 0;
};

/// The rule of two texts. Errors: F34 `vocab: merge <rank> names an unknown token`.
Result<MergePair> find_merge(const Vocabulary& vocabulary, std::string_view left,
                             std::string_view right, std::size_t rank);

/// The rule of a "left right" text (exactly one space between two non-empty texts).
Result<MergePair> find_merge(const Vocabulary& vocabulary, std::string_view joined,
                             std::size_t rank);

}  // namespace cyb
