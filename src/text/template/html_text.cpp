// html.unescape: &name; &#N; &#xN; with the standard's corrections of numbers.
#include "text/template/html_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"

namespace cyb::tmpl {
namespace {

struct Entity {
  std::string_view name, text;
};

constexpr Entity kEntities[] = {
#define E(name, text) Entity{name, text},
#include "text/template/html_entities.inc"
#undef E
};

/// 0x80 to 0x9F are read as Windows-1252; where that has nothing they stay.
constexpr std::array<std::uint16_t, 32> kWindows1252 = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

const Entity* find_entity(std::string_view name) {
  const auto at = std::ranges::lower_bound(kEntities, name, {}, &Entity::name);
  return at != std::end(kEntities) && at->name == name ? at : nullptr;
}

void append_number(std::string& out, std::uint32_t number) {
  const bool is_noncharacter =
      (number >= 0xFDD0 && number <= 0xFDEF) || (number & 0xFFFE) == 0xFFFE;
  const bool is_control = (number >= 0x1 && number <= 0x8) || number == 0xB ||
                          (number >= 0xE && number <= 0x1F) || number == 0x7F;
  if (number >= 0x80 && number <= 0x9F) {
    utf8_append(out, kWindows1252[number - 0x80]);
  } else if (number == 0 || number > 0x10FFFF || (number >= 0xD800 && number <= 0xDFFF)) {
    utf8_append(out, 0xFFFD);
  } else if (!is_noncharacter && !is_control) {
    utf8_append(out, number);
  }
}

int digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 32);
  return base == 16 && low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// `at` is behind "&#". 0: no number there.
std::size_t read_number(std::string_view text, std::size_t at, std::string& out) {
  const bool hex = at < text.size() && (text[at] | 32) == 'x';
  const int base = hex ? 16 : 10;
  std::size_t end = at + (hex ? 1 : 0);
  const std::size_t first = end;
  std::uint32_t number = 0;
  for (; end < text.size() && digit_of(text[end], base) >= 0; ++end) {
    number = std::min<std::uint32_t>(0x110000,
                                     number * static_cast<std::uint32_t>(base) +
                                         static_cast<std::uint32_t>(digit_of(text[end], base)));
  }
  if (end == first) return 0;
  if (end < text.size() && text[end] == ';') ++end;
  append_number(out, number);
  return end;
}

/// `at` is behind "&". 0: no reference there.
std::size_t read_name(std::string_view text, std::size_t at, std::string& out) {
  std::size_t end = at;
  for (int n = 0; n < 32 && end < text.size(); ++n) {
    if (std::string_view("\t\n\f <&#;").find(text[end]) != std::string_view::npos) break;
    end += text::valid_size(static_cast<unsigned char>(text[end]));
  }
  if (end == at) return 0;
  if (end < text.size() && text[end] == ';') ++end;
  const std::string_view whole = text.substr(at, end - at);
  if (const Entity* entity = find_entity(whole)) {
    out += entity->text;
    return end;
  }
  for (std::size_t size = whole.size() - 1; size > 1; --size) {
    if (const Entity* entity = find_entity(whole.substr(0, size))) {
      out += entity->text;
      out += whole.substr(size);
      return end;
    }
  }
  out += '&';
  out += whole;
  return end;
}

}  // namespace

std::string unescape_html(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find('&', at), text.size());
    out += text.substr(at, mark - at);
    at = mark;
    if (at == text.size()) break;
    const bool number = at + 1 < text.size() && text[at + 1] == '#';
    const std::size_t end = number ? read_number(text, at + 2, out) : read_name(text, at + 1, out);
    if (end == 0) out += '&';
    at = end == 0 ? at + 1 : end;
  }
  return out;
}

}  // namespace cyb::tmpl
