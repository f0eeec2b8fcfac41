// What a Tokenizer is made of: tokenizer.cpp builds it, tokenizer_encode.cpp runs it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "text/grammar/token_trie.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/pretokenizers/pretokenizer.hpp"
#include "text/tokenizer.hpp"
#include "text/tokenizers/added_tokens.hpp"
#include "text/tokenizers/piece_encoder.hpp"
#include "text/tokenizers/unigram.hpp"
#include "text/tokenizers/word_table.hpp"

namespace cyb {

struct Tokenizer::Impl {
  TokenizerConfig config;
  Vocabulary vocabulary;
  text::PieceTable pieces;
  text::PieceEncoder encoder;
  text::Unigram unigram;
  text::WordTable words;
  text::AddedTokens added;
  std::unique_ptr<text::Pipeline> pipeline;
  text::NextPiece next_piece = nullptr;
  std::vector<bool> control;  // [V]
  struct KeptTrie {
    std::vector<std::int32_t> shown;
    std::shared_ptr<const text::TokenTrie> trie;
  };
  std::mutex trie_mutex;
  KeptTrie plain_trie, shown_trie;

  Result<void> build(TokenizerParts parts);
  /// A user-defined token of a sentencepiece model: matched in the text as it was normalised.
  bool is_symbol(std::int32_t id) const noexcept {
    return pipeline && pipeline->symbols() != nullptr && id < pipeline->n_pieces();
  }
  Result<void> check_ids() const;
  Result<void> add_specials(std::vector<std::int32_t> special_ids, bool by_score);
  Result<void> encode_text(std::string_view whole, const std::vector<text::ControlRun>& runs,
                           text::EncodeScratch& scratch) const;
  Result<void> encode_fragment(std::string_view fragment, text::FragmentPlace place,
                               text::EncodeScratch& scratch) const;
  void guard(std::int32_t id);
  Result<void> build_model(const std::vector<MergePair>& merges);
  Result<bool> drops_start(std::string_view fragment) const;
  Result<void> encode_pieces(std::string_view fragment, bool first, bool shifted,
                             text::EncodeScratch& scratch) const;
  Result<void> encode_piece(std::string_view piece, text::EncodeScratch& scratch) const;
  Result<void> encode_normal(std::string_view fragment, bool first, text::EncodeScratch& scratch,
                             bool shifted = false) const;
  Result<void> encode_bpe(std::string_view fragment, text::EncodeScratch& scratch) const;
  Result<void> encode_spm(std::string_view fragment, bool first,
                          text::EncodeScratch& scratch) const;
  Result<void> encode_symbols(std::string_view text, text::EncodeScratch& scratch) const;
  Result<void> encode_marked(std::string_view all, text::EncodeScratch& scratch) const;
  Result<std::vector<std::int32_t>> run(std::string_view whole,
                                        const std::vector<text::ControlRun>& runs,
                                        const EncodeOptions& options) const;
};

}  // namespace cyb
