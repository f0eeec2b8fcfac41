// UTF-8: a table-free decoder; the second byte's range depends on the lead byte (E0, ED, F0, F4).
#include "base/utf8.hpp"

namespace cyb {
namespace {

struct Lead {
  std::size_t size;  // 0: not a lead byte
  unsigned char second_min, second_max;
};

Lead lead_of(unsigned char b) noexcept {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b < 0xF0) {
    return {3, static_cast<unsigned char>(b == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(b == 0xED ? 0x9F : 0xBF)};
  }
  if (b < 0xF5) {
    return {4, static_cast<unsigned char>(b == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(b == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

}  // namespace

Utf8Char utf8_next(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = lead_of(byte(at));
  if (lead.size == 0) return {};
  if (lead.size == 1) return {byte(at), 1, true, false};
  char32_t code = byte(at) & (0x7Fu >> lead.size);
  for (std::size_t i = 1; i < lead.size; ++i) {
    if (at + i >= text.size()) return {0xFFFD, i, false, true};
    const unsigned char b = byte(at + i);
    const unsigned char lo = i == 1 ? lead.second_min : 0x80;
    const unsigned char hi = i == 1 ? lead.second_max : 0xBF;
    if (b < lo || b > hi) return {0xFFFD, i, false, false};
    code = (code << 6) | (b & 0x3Fu);
  }
  return {code, lead.size, true, false};
}

std::size_t utf8_find_invalid(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (!c.valid) return i;
    i += c.size;
  }
  return std::string_view::npos;
}

void utf8_append(std::string& out, char32_t c) {
  const auto put = [&](char32_t b) { out += static_cast<char>(static_cast<unsigned char>(b)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::size_t utf8_complete_prefix(std::string_view text) noexcept {
  const std::size_t from = text.size() < 4 ? 0 : text.size() - 4;
  for (std::size_t i = text.size(); i-- > from;) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    const Utf8Char c = utf8_next(text, i);
    return !c.valid && c.truncated ? i : text.size();
  }
  return text.size();
}

std::string utf8_replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (c.valid) {
      out += text.substr(i, c.size);
    } else {
      out += "\xEF\xBF\xBD";
    }
    i += c.size;
  }
  return out;
}

}  // namespace cyb
