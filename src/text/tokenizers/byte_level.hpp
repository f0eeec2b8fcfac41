// GPT-2's byte alphabet: every byte has a printable character, so that a vocabulary of bytes is a
// vocabulary of text (spec model-format 7.2: bytes 33-126, 161-172, 174-255 map to themselves, the
// other 68 to U+0100...U+0143).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cyb::text {

/// The character of a byte.
char32_t byte_to_char(std::uint8_t byte) noexcept;

/// The byte of a character, or -1.
int char_to_byte(char32_t code_point) noexcept;

/// Appends the bytes that `text` stands for. False, and nothing appended, if a character is not of
/// the alphabet.
bool append_mapped_bytes(std::string& out, std::string_view text);

/// The byte of a `<0xNN>` text, or -1. Exactly two hexadecimal digits, upper or lower case.
int parse_byte_token(std::string_view text) noexcept;

}  // namespace cyb::text
