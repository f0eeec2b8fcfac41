// Classes from Unicode's general categories; white space is the White_Space property.
#include "text/pretokenizers/char_class.hpp"

#include "text/unicode_tables.hpp"

namespace cyb::text {
namespace {

bool is_white_space(char32_t c) noexcept {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

CharClass class_of(char32_t c) noexcept {
  if (c < 0x80) return kAsciiClasses[c];
  switch (category_of(c) >> 8) {
    case 'L':
      return CharClass::kLetter;
    case 'N':
      return CharClass::kNumber;
    default:
      return is_white_space(c) ? CharClass::kSpace : CharClass::kOther;
  }
}

}  // namespace cyb::text
