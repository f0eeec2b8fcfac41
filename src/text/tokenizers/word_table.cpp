// Words to ids. At most max_chars characters a word, so that the greedy search stays bounded.
#include "text/tokenizers/word_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/pretokenizers/char_class.hpp"

namespace cyb::text {
namespace {

bool starts_char(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

}  // namespace

Result<void> WordTable::build(const TokenizerConfig& config, const Vocabulary& vocabulary,
                              Shape shape) {
  config_ = &config;
  vocabulary_ = &vocabulary;
  shape_ = std::move(shape);
  return {};
}

std::int32_t WordTable::find(std::string_view text) const noexcept {
  const std::int32_t id = vocabulary_->find(text);
  if (id < 0) return -1;
  const TokenType type = vocabulary_->type(id);
  return type == TokenType::kNormal || type == TokenType::kUserDefined ? id : -1;
}

Result<void> WordTable::unknown(std::string_view word, EncodeScratch& scratch) const {
  if (!config_->unk_token_id) {
    return fail(tokenizer_error(
        fmt::format("the vocabulary has no token for a word of {} byte(s)", word.size())));
  }
  scratch.ids.push_back(*config_->unk_token_id);
  return {};
}

Result<void> WordTable::encode(std::string_view word, EncodeScratch& scratch) const {
  if (config_->type == TokenizerKind::kWordLevel) {
    const std::int32_t id = find(word);
    if (id < 0) return unknown(word, scratch);
    scratch.ids.push_back(id);
    return {};
  }
  const auto chars = std::ranges::count_if(word, starts_char);
  if (static_cast<std::size_t>(chars) > shape_.max_chars) return unknown(word, scratch);
  const std::size_t before = scratch.ids.size();
  std::string piece;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t marked = at > 0 ? shape_.prefix.size() : 0;
    piece.assign(shape_.prefix, 0, marked).append(word.substr(at));
    std::int32_t id = -1;
    while (piece.size() > marked) {
      if (piece.size() <= vocabulary_->max_text_bytes()) id = find(piece);
      if (id >= 0) break;
      while (piece.size() > marked && !starts_char(piece.back())) piece.pop_back();
      piece.pop_back();
    }
    if (id < 0) {
      scratch.ids.resize(before);
      return unknown(word, scratch);
    }
    scratch.ids.push_back(id);
    at += piece.size() - marked;
  }
  return {};
}

}  // namespace cyb::text
