// As Normalizer::Normalize of sentencepiece 0.2 does it, rule by rule.
#include "text/normalizers/sentencepiece.hpp"

#include <utility>

#include "text/pretokenizers/char_class.hpp"
#include "text/tokenizers/space_mark.hpp"

namespace cyb::text {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 28;

}  // namespace

Result<std::unique_ptr<SentencePieceNormalizer>> SentencePieceNormalizer::make(
    Fields& fields, std::shared_ptr<const SpecialMatcher> symbols) {
  auto out = std::make_unique<SentencePieceNormalizer>();
  CYB_ASSIGN(out->options_.add_dummy_prefix, fields.flag("add_dummy_prefix", true));
  CYB_ASSIGN(out->options_.remove_extra_whitespaces, fields.flag("remove_extra_whitespaces", true));
  CYB_ASSIGN(out->options_.escape_whitespaces, fields.flag("escape_whitespaces", true));
  CYB_ASSIGN(const std::string coded, fields.text("precompiled_charsmap", ""));
  CYB_ASSIGN(const std::string blob, base64_bytes(coded));
  if (!blob.empty()) {
    CYB_ASSIGN(out->map_, CharMap::read(blob));
  }
  out->symbols_ = std::move(symbols);
  return out;
}

SentencePieceNormalizer::Prefix SentencePieceNormalizer::prefix_of(std::string_view text,
                                                                   std::size_t at) const noexcept {
  if (const std::size_t size = symbols_->longest_at(text, at).end; size > 0) {
    return {text.substr(at, size - at), size - at};
  }
  if (map_) {
    const CharMap::Hit hit = map_->longest(text.substr(at));
    if (hit.size > 0) return {hit.text, hit.size};
  }
  const std::size_t size = valid_size(static_cast<unsigned char>(text[at]));
  return {text.substr(at, size), size};
}

Result<void> SentencePieceNormalizer::apply(std::string& text) const {
  const bool tidy = options_.remove_extra_whitespaces;
  const std::string_view space = options_.escape_whitespaces ? kSpaceMark : " ";
  std::size_t at = 0;
  while (tidy && at < text.size()) {
    const Prefix prefix = prefix_of(text, at);
    if (prefix.text != " ") break;
    at += prefix.size;
  }
  std::string out;
  if (at == text.size()) {
    text.clear();
    return {};
  }
  out.reserve(text.size() + text.size() / 2);
  if (options_.add_dummy_prefix) out.append(space);
  bool after_space = tidy;
  while (at < text.size()) {
    Prefix prefix = prefix_of(text, at);
    at += prefix.size;
    while (after_space && prefix.text.starts_with(' ')) prefix.text.remove_prefix(1);
    for (const char c : prefix.text) {
      if (c == ' ') {
        out.append(space);
      } else {
        out += c;
      }
    }
    if (!prefix.text.empty()) after_space = prefix.text.ends_with(' ');
    if (!tidy) after_space = false;
    if (out.size() > kMaxText) return fail(tokenizer_error("the normalised text is too long"));
  }
  while (tidy && out.ends_with(space)) out.resize(out.size() - space.size());
  text = std::move(out);
  return {};
}

}  // namespace cyb::text
