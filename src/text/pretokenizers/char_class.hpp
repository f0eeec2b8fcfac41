// Character classes of the pre-tokenizers' expressions: \p{L}, \p{N}, \s (Unicode White_Space), and
// the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cyb::text {

enum class CharClass : std::uint8_t { kOther, kLetter, kNumber, kSpace };

CharClass class_of(char32_t code_point) noexcept;

constexpr CharClass ascii_class(unsigned byte) noexcept {
  if ((byte | 32U) >= 'a' && (byte | 32U) <= 'z') return CharClass::kLetter;
  if (byte >= '0' && byte <= '9') return CharClass::kNumber;
  if (byte == ' ' || (byte >= 9 && byte <= 13)) return CharClass::kSpace;
  return CharClass::kOther;
}

inline constexpr std::array<CharClass, 128> kAsciiClasses = [] {
  std::array<CharClass, 128> classes{};
  for (unsigned byte = 0; byte < 128; ++byte) classes[byte] = ascii_class(byte);
  return classes;
}();

/// A character of valid UTF-8: its class and its size in bytes.
struct Char {
  CharClass kind = CharClass::kOther;
  std::uint8_t size = 0;  // 0: the end of the text
};

/// Decodes without checks: `text` must be valid UTF-8.
inline char32_t decode_valid(std::string_view text, std::size_t at, std::size_t size) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  switch (size) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
             (byte(3) & 0x3F);
  }
}

inline std::size_t valid_size(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

inline Char char_at(std::string_view text, std::size_t at) noexcept {
  if (at >= text.size()) return {};
  const unsigned char lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {kAsciiClasses[lead], 1};
  const std::size_t size = valid_size(lead);
  return {class_of(decode_valid(text, at, size)), static_cast<std::uint8_t>(size)};
}

}  // namespace cyb::text
