// Tokenizer: text to ids and back. Immutable after create() and guard_markers(), so one may be used
// by all threads. Every step is O(n) or O(n log n) in the text and needs no stack that grows with
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb {

namespace text {
class TokenTrie;
}

struct EncodeOptions {
  bool parse_special = false;  // control tokens written in the text are matched
  bool add_special = true;     // add BOS and EOS where the config says so
};

/// A run of text of one trust: `control` was written by a chat template, the rest is content of
/// messages.
struct TextSegment {
  std::string_view text;
  bool control = false;
};

struct DecodeOptions {
  bool skip_special = false;       // control tokens print nothing
  bool strip_space_prefix = true;  // drop the one leading space that encode() added (spm)
};

/// What decoding drops at the two ends of a text.
struct DecodeEnds {
  bool first_space = false, last_space = false;
  bool no_repeats = false;    // a token that is the one before it again
  bool first_spaces = false;  // the first space of every token before there is any text
};

class Tokenizer {
 public:
  /// Errors: F34, InvalidConfig, Tokenizer, naming the id at fault.
  static Result<std::unique_ptr<Tokenizer>> create(TokenizerParts parts);
  ~Tokenizer();

  /// `text` is UTF-8. Errors: InvalidInput for bad UTF-8 or too long a text; Tokenizer for a symbol
  /// without a token and without unk, and always for a model of ids.
  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const EncodeOptions& options = {}) const;

  /// The segments are one text. A control token is matched only where all of its bytes are control;
  /// user-defined tokens everywhere (guarded markers only where all bytes are control).
  /// `parse_special` is not used.
  Result<std::vector<std::int32_t>> encode_segments(std::span<const TextSegment> segments,
                                                    const EncodeOptions& options = {}) const;

  /// User-defined tokens that a chat template itself writes (`literals`: Template::literals()),
  /// such as
  /// "<tool_call>", become markers: content never turns into them. White-space tokens are left
  /// alone.
  void guard_markers(std::span<const std::string> literals);

  /// Whole text of `ids`; bad UTF-8 becomes U+FFFD. Errors: InvalidInput for an id outside the
  /// vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> ids,
                             const DecodeOptions& options = {}) const;

  /// The bytes that a token stands for (not always whole UTF-8); empty for an id outside the
  /// vocabulary.
  std::string_view piece(std::int32_t id) const noexcept;

  /// piece() where the token is the first of a text.
  std::string first_piece(std::int32_t id) const;
  DecodeEnds decode_ends() const noexcept;

  /// Control and unknown tokens, and those listed as special: never part of an answer's text.
  bool is_control(std::int32_t id) const noexcept;
  /// One of eos_token_ids.
  bool is_eos(std::int32_t id) const noexcept;

  /// The pieces of all tokens that are text, as a tree; built at the first call. `shown`: control
  /// tokens that are text too, ascending; the tree of the latest ones is kept.
  std::shared_ptr<const text::TokenTrie> trie(std::span<const std::int32_t> shown = {}) const;

  const TokenizerConfig& config() const noexcept;
  const Vocabulary& vocabulary() const noexcept;
  /// 0 for a model of ids.
  std::int32_t vocab_size() const noexcept;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Ids to text, piece by piece: emits whole UTF-8 only and holds an incomplete character back.
class StreamDecoder {
 public:
  /// For an answer that continues a prompt pass strip_space_prefix = false. The tokenizer must
  /// outlive this.
  StreamDecoder(const Tokenizer& tokenizer, const DecodeOptions& options)
      : tokenizer_(&tokenizer), options_(options), at_start_(options.strip_space_prefix) {}

  /// Appends to `out` what became whole. Ids outside the vocabulary add nothing.
  void push(std::int32_t id, std::string& out);
  /// End of the stream: what is still held becomes U+FFFD.
  void finish(std::string& out);

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool at_start_;       // no token was pushed
  bool blank_ = true;   // no text came out
  bool space_ = false;  // one space was held back at the end
  std::int32_t last_ = -1;
  std::string held_;
};

}  // namespace cyb
