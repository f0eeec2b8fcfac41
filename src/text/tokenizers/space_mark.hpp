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

/// Appends `text` with spaces for the marks.
inline void append_plain_spaces(std::string& out, std::string_view text) {
  while (true) {
    const std::size_t mark = text.find(kSpaceMark);
    out.append(text.substr(0, mark));
    if (mark == std::string_view::npos) return;
    out += ' ';
    text.remove_prefix(mark + kSpaceMark.size());
  }
}

inline std::string plain_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_plain_spaces(out, text);
  return out;
}

}  // namespace cyb::text
