// JSON string quoting (RFC 8259 section 7) with replacement of invalid UTF-8 by maximal subparts.
#include "base/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.hpp"

namespace cyb {

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (!c.valid) {
      out += "\\ufffd";
    } else if (c.code_point == '"' || c.code_point == '\\') {
      out += '\\';
      out += static_cast<char>(c.code_point);
    } else if (c.code_point < 0x20 || c.code_point == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c.code_point));
    } else {
      out += text.substr(i, c.size);
    }
    i += c.size;
  }
  return out + '"';
}

namespace {

/// `digits`: a sign and digits alone.
bool is_wide(std::string_view digits) noexcept {
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  const std::string_view most = negative ? "9223372036854775808" : "18446744073709551615";
  return digits.size() != most.size() ? digits.size() > most.size() : digits > most;
}

}  // namespace

std::size_t find_wide_integer(std::string_view text) noexcept {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\') ++i;
    if (c == '"') inside = !inside;
    if (inside || (c != '-' && (c < '0' || c > '9'))) continue;
    const std::size_t end = std::min(text.find_first_not_of("+-.0123456789Ee", i), text.size());
    const std::string_view number = text.substr(i, end - i);
    if (number.find_first_of(".Ee") == std::string_view::npos && is_wide(number)) return i;
    i = end - 1;
  }
  return std::string_view::npos;
}

}  // namespace cyb
