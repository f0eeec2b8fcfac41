// WordTable: WordPiece (greedy, longest piece first) and WordLevel (a word is a token or unknown).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "text/tokenizer_config.hpp"
#include "text/tokenizers/piece_encoder.hpp"

namespace cyb::text {

class WordTable {
 public:
  struct Shape {
    std::string prefix;           // of a piece that continues a word: "##"
    std::size_t max_chars = 100;  // longer words are unknown
  };
  /// `config` and `vocabulary` must outlive this. Errors: Tokenizer for a WordPiece without unk.
  Result<void> build(const TokenizerConfig& config, const Vocabulary& vocabulary, Shape shape);

  /// Appends the ids of `word` to scratch.ids. Errors: Tokenizer for an unknown word without unk.
  Result<void> encode(std::string_view word, EncodeScratch& scratch) const;

 private:
  std::int32_t find(std::string_view text) const noexcept;
  Result<void> unknown(std::string_view word, EncodeScratch& scratch) const;

  const TokenizerConfig* config_ = nullptr;
  const Vocabulary* vocabulary_ = nullptr;
  Shape shape_;
};

}  // namespace cyb::text
