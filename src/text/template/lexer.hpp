// Lexer: the source as tokens, with jinja2's rules for white space around tags (trim_blocks,
// lstrip_blocks, - and +).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/context.hpp"

namespace cyb::tmpl {

enum class TokenKind : std::uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

/// Operators by their text; two-character ones first where one is a prefix of the other.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  Position at;
  std::string text;  // data, name, string (unescaped), operator
  std::int64_t integer = 0;
  double number = 0.0;
};

/// Throws Failure. The last token is kEnd. `source`: valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

/// White space as Python's str.strip() and \s see it (both agree on these characters but for
/// U+001C..U+001F).
bool is_python_space(char32_t c) noexcept;
/// `text` without white space at its end / start: offsets.
std::size_t rstrip_end(std::string_view text) noexcept;
std::size_t lstrip_begin(std::string_view text, std::size_t from = 0) noexcept;

}  // namespace cyb::tmpl
