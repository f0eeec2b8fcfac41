// Lexer: the source as tokens, with jinja2's rules for white space around tags (trim_blocks,
// lstrip_blocks, - and +).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/context.hpp"
#include "text/template/white_space.hpp"

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

}  // namespace cyb::tmpl
