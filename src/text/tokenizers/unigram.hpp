// Unigram: the cut of a text into pieces whose scores have the greatest sum (Viterbi over bytes).
// O(n times the longest token); no recursion.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer_config.hpp"
#include "text/tokenizers/piece_encoder.hpp"

namespace cyb::text {

class Unigram {
 public:
  /// `vocabulary` must outlive this. `sentencepiece`: sums in 32 bits and user-defined tokens
  /// before all others, as sentencepiece has them. Errors: Tokenizer.
  Result<void> build(const TokenizerConfig& config, const Vocabulary& vocabulary,
                     bool sentencepiece = false);
  /// The token is no longer found in a text.
  void drop(std::int32_t id);

  /// Appends the ids of `piece` to scratch.ids. Characters without a token become byte tokens or,
  /// a run of them, one unk. Errors: Tokenizer where there is neither.
  Result<void> encode(std::string_view piece, EncodeScratch& scratch) const;

 private:
  struct Step {
    double score = 0;
    std::uint32_t from = 0;
    std::int32_t id = -1;  // kNone: nothing ends here; kUnknown
  };
  static constexpr std::int32_t kNone = -2, kUnknown = -1;

  Result<void> build_trie();
  Result<void> check_bytes();
  std::uint32_t child(std::uint32_t node, unsigned char byte) const noexcept;
  template <bool sentencepiece>
  void fill(std::string_view piece, std::vector<Step>& best) const;
  template <bool sentencepiece>
  double score_of(std::int32_t id, std::size_t size) const noexcept;
  Result<void> emit_unknown(std::string_view text, EncodeScratch& scratch) const;

  const TokenizerConfig* config_ = nullptr;
  const Vocabulary* vocabulary_ = nullptr;
  double unknown_score_ = 0;
  bool sentencepiece_ = false;
  std::array<std::int32_t, 256> byte_ids_{};
  // The trie in breadth-first order: node n + 1 is the target of edge n.
  std::vector<std::uint32_t> first_;  // [nodes + 1]: edges of a node
  std::vector<unsigned char> labels_;
  std::vector<std::int32_t> ids_;  // [nodes], -1: no token ends here
  std::array<std::uint32_t, 256> root_{};
};

}  // namespace cyb::text
