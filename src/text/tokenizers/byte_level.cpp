// Both directions of the byte alphabet, computed at compile time.
#include "text/tokenizers/byte_level.hpp"

#include <array>

#include "base/utf8.hpp"

namespace cyb::text {
namespace {

constexpr bool maps_to_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr std::array<std::uint16_t, 256> make_chars() {
  std::array<std::uint16_t, 256> chars{};
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    chars[byte] = maps_to_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return chars;
}
constexpr std::array<std::uint16_t, 256> kChars = make_chars();

constexpr std::array<std::int16_t, 0x144> make_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kChars[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}
constexpr std::array<std::int16_t, 0x144> kBytes = make_bytes();

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

char32_t byte_to_char(std::uint8_t byte) noexcept {
  return kChars[byte];
}

int char_to_byte(char32_t code_point) noexcept {
  return code_point < kBytes.size() ? kBytes[code_point] : -1;
}

bool append_mapped_bytes(std::string& out, std::string_view text) {
  const std::size_t start = out.size();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = utf8_next(text, at);
    const int byte = c.valid ? char_to_byte(c.code_point) : -1;
    if (byte < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(static_cast<unsigned char>(byte));
    at += c.size;
  }
  return true;
}

int parse_byte_token(std::string_view text) noexcept {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = hex_digit(text[3]);
  const int low = hex_digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace cyb::text
