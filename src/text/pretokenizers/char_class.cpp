// Classes from Unicode's general categories; white space is the White_Space property.
#include "text/pretokenizers/char_class.hpp"

#include <utf8proc.h>

namespace cyb::text {
namespace {

bool is_white_space(char32_t c) noexcept {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

CharClass class_of(char32_t c) noexcept {
  if (c < 0x80) return kAsciiClasses[c];
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::kNumber;
    default:
      return is_white_space(c) ? CharClass::kSpace : CharClass::kOther;
  }
}

}  // namespace cyb::text
