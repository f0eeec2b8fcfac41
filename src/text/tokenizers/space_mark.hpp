// U+2581, which stands for a space in SentencePiece texts.
#pragma once

#include <string>
#include <string_view>

namespace cyb::text {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

inline std::string marked_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      out.append(kSpaceMark);
    } else {
      out += c;
    }
  }
  return out;
}

inline std::string plain_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool mark = text.substr(at).starts_with(kSpaceMark);
    out += mark ? ' ' : text[at];
    at += mark ? kSpaceMark.size() : 1;
  }
  return out;
}

}  // namespace cyb::text
