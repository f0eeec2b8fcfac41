// Tests from Unicode's general categories.
#include "text/tokenizers/char_tests.hpp"

#include "text/unicode_tables.hpp"

namespace cyb::text {
namespace {

char major(char32_t c) noexcept {
  return static_cast<char>(category_of(c) >> 8);
}

}  // namespace

bool is_white_space(char32_t c) noexcept {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_decimal(char32_t c) noexcept {
  return category_of(c) == category_code("Nd");
}

bool is_numeric(char32_t c) noexcept {
  // The last two: Unicode 17, which Rust knows.
  return major(c) == 'N' || (c >= 0x11DE0 && c <= 0x11DE9) || (c >= 0x16FF4 && c <= 0x16FF6);
}

bool is_punctuation(char32_t c) noexcept {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  // Two that were punctuation in Unicode 8.
  if (c == 0x166D || c == 0x111C9) return true;
  return major(c) == 'P' && !is_unknown(OldTable::kPunctuation, c);
}

bool is_mark(char32_t c) noexcept {
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // marks in Unicode 9
  return major(c) == 'M' && !is_unknown(OldTable::kMark, c);
}

bool is_nonspacing_mark(char32_t c) noexcept {
  if (c == 0x1734) return true;  // in Unicode 8
  return category_of(c) == category_code("Mn") && !is_unknown(OldTable::kBertMark, c);
}

bool is_other(char32_t c) noexcept {
  const std::uint16_t kind = category_of(c);
  return kind >> 8 == 'C' && kind != category_code("Cn") && !is_unknown(OldTable::kBertOther, c);
}

bool is_chinese_char(char32_t c) noexcept {
  // 0x2B920 is what the implementation has that the checkpoints were trained with.
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_word(char32_t c) noexcept {
  const std::uint16_t kind = category_of(c);
  const bool joiner = c == 0x200C || c == 0x200D;
  const bool circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                       (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return joiner || circled || kind >> 8 == 'L' || kind >> 8 == 'M' || kind == category_code("Nd") ||
         kind == category_code("Nl") || kind == category_code("Pc");
}

}  // namespace cyb::text
