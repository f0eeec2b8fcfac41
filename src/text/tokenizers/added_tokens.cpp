// Flags of added tokens, as the `tokenizers` package reads them.
#include "text/tokenizers/added_tokens.hpp"

#include <algorithm>

#include "text/pipeline/pipeline.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/tokenizers/char_tests.hpp"

namespace cyb::text {
namespace {

/// Start of the character that ends at `at` (> 0).
std::size_t before(std::string_view text, std::size_t at) noexcept {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U);
  return at;
}

char32_t char_of(std::string_view text, std::size_t at) noexcept {
  return decode_valid(text, at, valid_size(static_cast<unsigned char>(text[at])));
}

}  // namespace

Result<void> AddedTokens::add(std::int32_t id, std::string_view text, MatchKind kind,
                              const Pipeline* pipeline) {
  if (pipeline == nullptr) return plain_.add(id, text, kind);
  const Pipeline::Flags& lists = pipeline->flags();
  const auto in = [id](const std::vector<std::int32_t>& ids) {
    return std::ranges::binary_search(ids, id);
  };
  const std::uint8_t flags =
      static_cast<std::uint8_t>((in(lists.lstrip) ? kLeft : 0) | (in(lists.rstrip) ? kRight : 0) |
                                (in(lists.single_word) ? kWord : 0));
  if (flags != 0) {
    flags_.resize(std::max(flags_.size(), static_cast<std::size_t>(id) + 1), 0);
    flags_[static_cast<std::size_t>(id)] = flags;
  }
  if (!in(lists.normalized)) return plain_.add(id, text, kind);
  std::string normal(text);
  CYB_TRY(pipeline->normalize(normal));
  if (normal.empty()) return {};  // nothing is left of it that could match
  has_normalized_ = true;
  return normalized_.add(id, normal, kind);
}

void AddedTokens::set_kind(std::int32_t id, MatchKind kind) {
  plain_.set_kind(id, kind);
  normalized_.set_kind(id, kind);
}

bool AddedTokens::accept(std::string_view whole, std::size_t done, SpecialMatch& match) const {
  const std::size_t id = static_cast<std::size_t>(match.id);
  const std::uint8_t flags = id < flags_.size() ? flags_[id] : 0;
  if ((flags & kWord) != 0) {
    const bool left = match.begin > 0 && is_word(char_of(whole, before(whole, match.begin)));
    const bool right = match.end < whole.size() && is_word(char_of(whole, match.end));
    if (left || right) return false;
  }
  if ((flags & kLeft) != 0) {
    while (match.begin > done && is_white_space(char_of(whole, before(whole, match.begin)))) {
      match.begin = before(whole, match.begin);
    }
  }
  if ((flags & kRight) != 0) {
    while (match.end < whole.size() && is_white_space(char_of(whole, match.end))) {
      match.end += valid_size(static_cast<unsigned char>(whole[match.end]));
    }
  }
  return true;
}

}  // namespace cyb::text
