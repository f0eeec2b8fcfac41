// The Unicode that the checkpoints' tokenizers know: Unicode 16 where the libraries here are older,
// and the older tables of single steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cyb::text {

/// General category as two letters (`Lu` is 'L' << 8 | 'u'); `Cn` where it is not assigned.
constexpr std::uint16_t category_code(const char* name) noexcept {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(name[0]) << 8 |
                                    static_cast<unsigned char>(name[1]));
}
std::uint16_t category_of(char32_t c) noexcept;

/// Ranges of characters newer than Unicode 14 as members of a class, of "L", "Lu"...
const std::string& newer_members(std::string_view category);

char32_t lower_of(char32_t c) noexcept;

/// Characters of a category that a step was built without.
enum class OldTable : std::uint8_t {
  kPunctuation,  // Punctuation, BertPreTokenizer
  kBertMark,     // strip_accents of BertNormalizer
  kBertOther,    // clean_text
  kMark,         // StripAccents, and combining classes of the normal forms
  kCompatible    // NFD, NFKC, NFKD
};
bool is_unknown(OldTable table, char32_t c) noexcept;

}  // namespace cyb::text
