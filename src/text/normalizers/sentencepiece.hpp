// The normalizer of a sentencepiece model: its character map, white space, the space in front and
// the space mark, in one walk. User-defined symbols stay as they are.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "text/normalizers/char_map.hpp"
#include "text/normalizers/steps.hpp"
#include "text/pipeline/fields.hpp"
#include "text/tokenizers/special_matcher.hpp"

namespace cyb::text {

class SentencePieceNormalizer final : public NormalizerStep {
 public:
  struct Options {
    bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  };

  /// Of the step {"type": "SentencePiece", ...}; `symbols` may be filled later. Errors: NotBuilt,
  /// Tokenizer.
  static Result<std::unique_ptr<SentencePieceNormalizer>> make(
      Fields& fields, std::shared_ptr<const SpecialMatcher> symbols);

  const Options& options() const noexcept { return options_; }
  Result<void> apply(std::string& text) const override;

 private:
  struct Prefix {
    std::string_view text;
    std::size_t size = 0;  // bytes of the input that it stands for
  };
  Prefix prefix_of(std::string_view text, std::size_t at) const noexcept;

  Options options_;
  std::optional<CharMap> map_;
  std::shared_ptr<const SpecialMatcher> symbols_;
};

}  // namespace cyb::text
