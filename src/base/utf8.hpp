// UTF-8 decoding with Unicode's maximal-subpart rule for bad bytes (Unicode 15, section 3.9, table
// 3-7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cyb {

struct Utf8Char {
  char32_t code_point = 0xFFFD;  // U+FFFD when not valid
  std::size_t size = 1;          // bytes consumed, >= 1
  bool valid = false;
  bool truncated = false;  // not valid only because the text ends too early
};

/// The character that starts at byte `at` (at < text.size()).
Utf8Char utf8_next(std::string_view text, std::size_t at) noexcept;

/// Offset of the first bad byte, or npos.
std::size_t utf8_find_invalid(std::string_view text) noexcept;

/// Appends `code_point` (a scalar value) as UTF-8.
void utf8_append(std::string& out, char32_t code_point);

/// Number of leading bytes that form whole characters; an incomplete last character is left out
/// (for streaming).
std::size_t utf8_complete_prefix(std::string_view text) noexcept;

/// Copy with every maximal bad subpart replaced by U+FFFD.
std::string utf8_replace_invalid(std::string_view text);

}  // namespace cyb
