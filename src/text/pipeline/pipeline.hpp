// Pipeline: what `[tokenizer.pipeline]` says, ready to run: normalizers, pre-tokenizers, decoder,
// the ids around a text, and the flags of added tokens. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/decoders/decoding.hpp"
#include "text/normalizers/sentencepiece.hpp"
#include "text/normalizers/steps.hpp"
#include "text/pretokenizers/steps.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb::text {

class Pipeline {
 public:
  /// `text`: TokenizerConfig::pipeline. Errors: NotBuilt naming a component or a field;
  /// InvalidConfig for a text that is no pipeline.
  static Result<std::unique_ptr<Pipeline>> make(std::string_view text,
                                                const TokenizerConfig& config);

  bool normalizes() const noexcept { return !normalizers_.empty(); }
  Result<void> normalize(std::string& text) const;
  /// Cuts pieces.list further.
  Result<void> cut(Pieces& pieces) const;

  /// The model takes the bytes of a piece, not its characters (byte-level BPE).
  bool takes_bytes() const noexcept { return takes_bytes_; }
  /// nullptr: as the tokenizer's type decodes.
  const Decoding* decoding() const noexcept { return decoding_ ? &*decoding_ : nullptr; }
  /// Set where a text gets ids around it that add_bos_token and add_eos_token cannot say.
  bool has_frame() const noexcept { return has_frame_; }
  const std::vector<std::int32_t>& before() const noexcept { return before_; }
  const std::vector<std::int32_t>& after() const noexcept { return after_; }

  /// Added tokens, by id, ascending.
  struct Flags {
    std::vector<std::int32_t> lstrip, rstrip, single_word, normalized;
  };
  const Flags& flags() const noexcept { return flags_; }

  /// Of a sentencepiece model, else null: user-defined tokens that are matched in the text as it
  /// was normalised as a whole. Those with an id below n_pieces() belong there.
  SpecialMatcher* symbols() noexcept { return symbols_.get(); }
  const SpecialMatcher* symbols() const noexcept { return symbols_.get(); }
  std::int32_t n_pieces() const noexcept { return n_pieces_; }
  /// Decoding drops the space that the sentencepiece normalizer put in front; the second: and all
  /// others at the start.
  bool strips_prefix() const noexcept { return strips_prefix_; }
  bool strips_all_spaces() const noexcept { return strips_all_spaces_; }

  /// BPE merges what joins to a token, the lowest id first (tiktoken), not by a list of merges.
  bool ranks_are_ids() const noexcept { return ranks_are_ids_; }

  const std::string& word_prefix() const noexcept { return word_prefix_; }
  const std::string& word_suffix() const noexcept { return word_suffix_; }
  std::size_t max_word_chars() const noexcept { return max_word_chars_; }

 private:
  Result<void> add_normalizer(const nlohmann::json& step);

  std::vector<std::unique_ptr<NormalizerStep>> normalizers_;
  std::vector<std::unique_ptr<PreTokenizerStep>> pre_tokenizers_;
  std::optional<Decoding> decoding_;
  bool takes_bytes_ = false, has_frame_ = false, strips_prefix_ = false, strips_all_spaces_ = false,
       ranks_are_ids_ = false;
  std::shared_ptr<SpecialMatcher> symbols_;
  std::int32_t n_pieces_ = 0;
  std::vector<std::int32_t> before_, after_;
  Flags flags_;
  std::string word_prefix_, word_suffix_;
  std::size_t max_word_chars_ = 100;
};

}  // namespace cyb::text
