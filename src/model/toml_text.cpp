// check_text: what every text part must be before anything else looks at it. Runs over the whole
// part, so that ASCII goes eight bytes at a time.
#include <fmt/format.h>

#include <cstring>

#include "base/utf8.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

/// Number of leading ASCII bytes, eight at a time.
std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

std::size_t find_invalid(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const Utf8Char c = utf8_next(text, at);
      if (!c.valid) return at;
      at += c.size;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<void> check_text(std::string_view text, std::string_view part, bool allow_cr) {
  const auto bad = [&](std::string_view what, std::size_t at) {
    return fail(format_error("F05", fmt::format("{}: {} at byte {}", part, what, at)));
  };
  if (text.starts_with("\xEF\xBB\xBF")) return bad("BOM", 0);
  if (!allow_cr) {
    const std::size_t cr = text.find('\r');
    if (cr != std::string_view::npos) return bad("CR", cr);
  }
  const std::size_t invalid = find_invalid(text);
  if (invalid != std::string_view::npos) return bad("invalid UTF-8", invalid);
  return {};
}

}  // namespace cyb
