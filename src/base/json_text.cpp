// JSON string quoting (RFC 8259 section 7) with replacement of invalid UTF-8 by maximal subparts.
#include "base/json_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/utf8.hpp"

namespace cyb {

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = utf8_next(text, i);
    if (!c.valid) {
      out += "\\ufffd";
    } else if (c.code_point == '"' || c.code_point == '\\') {
      out += '\\';
      out += static_cast<char>(c.code_point);
    } else if (c.code_point < 0x20 || c.code_point == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c.code_point));
    } else {
      out += text.substr(i, c.size);
    }
    i += c.size;
  }
  return out + '"';
}

}  // namespace cyb
