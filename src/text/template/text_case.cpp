// Simple mappings from utf8proc, the ones that give several characters from a table.
#include "text/template/text_case.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"

namespace cyb::tmpl {
namespace {

struct SpecialCase {
  char32_t code_point;
  std::string_view upper, title;
};

#define CYB_SPECIAL_CASE(code_point, upper, title) SpecialCase{code_point, upper, title},
constexpr SpecialCase kSpecial[] = {
#include "text/template/special_case.inc"
};
#undef CYB_SPECIAL_CASE

const SpecialCase* special(char32_t c) noexcept {
  if (c < 0xDF) return nullptr;
  const auto* found =
      std::lower_bound(std::begin(kSpecial), std::end(kSpecial), c,
                       [](const SpecialCase& row, char32_t x) { return row.code_point < x; });
  return found != std::end(kSpecial) && found->code_point == c ? found : nullptr;
}

utf8proc_category_t category(char32_t c) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool has_upper_case(char32_t c) noexcept {
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216F) ||
         (c >= 0x24B6 && c <= 0x24CF);
}

// Lower case, with the characters of Other_Lowercase.
bool has_lower_case(char32_t c) noexcept {
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
         (c >= 0x2B0 && c <= 0x2B8) || (c >= 0x2C0 && c <= 0x2C1) || (c >= 0x2E0 && c <= 0x2E4) ||
         (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9) ||
         (c >= 0x1D2C && c <= 0x1D6A) || c == 0x1D78 || (c >= 0x1D9B && c <= 0x1DBF) ||
         c == 0x2071 || c == 0x207F || (c >= 0x2090 && c <= 0x209C) || c == 0x345 || c == 0x37A;
}

bool is_cased(char32_t c) noexcept {
  return has_upper_case(c) || has_lower_case(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t c) noexcept {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019 || c == 0x2018 ||
             c == 0x2024 || c == 0x2027;
  }
}

struct Chars {
  std::string_view text;
  std::size_t at = 0;
  bool next(char32_t& c) {
    if (at >= text.size()) return false;
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[at]));
    c = text::decode_valid(text, at, size);
    at += size;
    return true;
  }
};

/// A sigma that ends a word: a cased letter before it, none after, ignorable characters aside.
bool is_final_sigma(std::string_view text, std::size_t begin, std::size_t end) {
  bool before = false;
  for (std::size_t at = begin; at > 0;) {
    std::size_t start = at - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) --start;
    const char32_t c = text::decode_valid(text, start, at - start);
    at = start;
    if (is_case_ignorable(c)) continue;
    before = is_cased(c);
    break;
  }
  if (!before) return false;
  char32_t c = 0;
  for (Chars rest{text, end}; rest.next(c);) {
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t begin, std::size_t end,
                  char32_t c) {
  if (c == 0x3A3) {
    utf8_append(out, is_final_sigma(text, begin, end) ? 0x3C2 : 0x3C3);
  } else if (c == 0x130) {
    out += "i\xCC\x87";
  } else {
    utf8_append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCase* row = special(c)) {
    out += row->title;
  } else {
    utf8_append(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

bool all_cased(std::string_view text, bool (*wanted)(char32_t)) {
  bool any = false;
  char32_t c = 0;
  for (Chars chars{text}; chars.next(c);) {
    if (!is_cased(c)) continue;
    if (!wanted(c)) return false;
    any = true;
  }
  return any;
}

}  // namespace

std::string upper(std::string_view text) {
  std::string out;
  char32_t c = 0;
  for (Chars chars{text}; chars.next(c);) {
    if (const SpecialCase* row = special(c)) {
      out += row->upper;
    } else {
      utf8_append(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
    }
  }
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  char32_t c = 0;
  Chars chars{text};
  for (std::size_t begin = 0; chars.next(c); begin = chars.at)
    append_lower(out, text, begin, chars.at, c);
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  char32_t c = 0;
  Chars chars{text};
  for (std::size_t begin = 0; chars.next(c); begin = chars.at) {
    if (begin == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text, begin, chars.at, c);
    }
  }
  return out;
}

std::string title_words(std::string_view text) {
  std::string out;
  char32_t c = 0;
  bool inside = false;
  Chars chars{text};
  for (std::size_t begin = 0; chars.next(c); begin = chars.at) {
    if (inside) {
      append_lower(out, text, begin, chars.at, c);
    } else {
      append_title(out, c);
    }
    inside = is_cased(c);
  }
  return out;
}

bool is_upper(std::string_view text) {
  return all_cased(text, has_upper_case);
}
bool is_lower(std::string_view text) {
  return all_cased(text, has_lower_case);
}

}  // namespace cyb::tmpl
