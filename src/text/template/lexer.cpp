// The scanner of jinja2 (lexer.py, tokeniter), without its regular expressions.
#include "text/template/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.hpp"
#include "text/pretokenizers/char_class.hpp"

namespace cyb::tmpl {
namespace {

constexpr std::array<std::string_view, 26> kOperators{
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}
bool is_word(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// One kind of line end, and none at the very end of the source.
std::string normalised(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(normalised(source)), source_(text_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    emit(TokenKind::kEnd);
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string message) { throw Failure{position(), std::move(message)}; }

  bool follows(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  Position position() {
    for (; counted_ < at_; ++counted_) {
      const char c = source_[counted_];
      if (c == '\n') {
        ++line_;
        column_ = 1;
      } else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) {
        ++column_;
      }
    }
    return {line_, column_};
  }

  Token& emit(TokenKind kind, std::string_view text = {}) {
    Token token;
    token.kind = kind;
    token.at = position();
    token.text = text;
    out_.push_back(std::move(token));
    return out_.back();
  }

  void skip_space() { at_ = lstrip_begin(source_, at_); }

  /// Text before a tag whose sign is `sign`, with white space removed as the tag asks for.
  void data(std::size_t begin, std::size_t end, char sign, bool variable) {
    std::string_view piece = source_.substr(begin, end - begin);
    if (sign == '-') {
      piece = piece.substr(0, rstrip_end(piece));
    } else if (sign != '+' && !variable) {
      const std::size_t newline = piece.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const bool starts = line > 0 || line_starting_;
      if (starts && lstrip_begin(piece, line) == piece.size()) piece = piece.substr(0, line);
    }
    if (piece.empty()) return;
    const std::size_t here = at_;
    at_ = begin;
    emit(TokenKind::kData, piece);
    at_ = here;
  }

  char take_sign() {
    const char c = peek();
    if (c != '-' && c != '+') return '\0';
    ++at_;
    return c;
  }

  void root() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    while (true) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        emit(TokenKind::kData, source_.substr(begin));
        at_ = source_.size();
        return;
      }
      const char second = source_[tag + 1];
      if (second == '%' || second == '{' || second == '#') break;
      ++tag;
    }
    at_ = tag;
    const char second = source_[tag + 1];
    if (second == '%' && raw(begin, tag)) return;
    const TokenKind kind = second == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin;
    at_ = tag + 2;
    const char sign = take_sign();
    data(begin, tag, sign, second == '{');
    line_starting_ = false;
    if (second == '#') return comment(tag);
    const std::size_t after = at_;
    at_ = tag;
    emit(kind);
    at_ = after;
    tag_body(kind);
  }

  /// Ends a tag written `close`: with "-" white space after it goes, with `trim` one line end does.
  void finish_tag(bool minus, bool plus, bool trim, std::string_view close) {
    at_ += close.size() + (minus || plus ? 1 : 0);
    const std::size_t before = at_;
    if (minus) {
      skip_space();
    } else if (!plus && trim && peek() == '\n') {
      ++at_;
    }
    line_starting_ = at_ > before && source_[at_ - 1] == '\n';
  }

  bool closes(std::string_view close, bool allow_plus, bool trim) {
    const bool minus = peek() == '-' && source_.substr(at_ + 1).starts_with(close);
    const bool plus = allow_plus && peek() == '+' && source_.substr(at_ + 1).starts_with(close);
    if (!minus && !plus && !follows(close)) return false;
    finish_tag(minus, plus, trim, close);
    return true;
  }

  void comment(std::size_t tag) {
    for (; at_ < source_.size(); ++at_) {
      if (closes("#}", true, true)) return;
    }
    at_ = tag;
    fail("Missing end of comment tag");
  }

  /// `{% raw %}`...`{% endraw %}` at `tag`; false if it is another tag.
  bool raw(std::size_t begin, std::size_t tag) {
    at_ = tag + 2;
    const char sign = take_sign();
    skip_space();
    const bool is_raw = follows("raw");
    if (is_raw) at_ += 3;
    skip_space();
    if (!is_raw || !(follows("%}") || follows("-%}"))) {
      at_ = tag;
      return false;
    }
    data(begin, tag, sign, false);
    finish_tag(peek() == '-', false, false, "%}");
    const std::size_t body = at_;
    for (std::size_t end = source_.find("{%", at_); end != std::string_view::npos;
         end = source_.find("{%", end + 1)) {
      at_ = end + 2;
      const char end_sign = take_sign();
      skip_space();
      if (!follows("endraw")) continue;
      at_ += 6;
      skip_space();
      const std::size_t close = at_;
      const bool was_starting = line_starting_;
      if (!closes("%}", true, true)) continue;
      const bool now_starting = line_starting_;
      line_starting_ = was_starting;
      const std::size_t after = at_;
      at_ = close;
      data(body, end, end_sign, false);
      at_ = after;
      line_starting_ = now_starting;
      return true;
    }
    at_ = tag;
    fail("Missing end of raw directive");
  }

  void tag_body(TokenKind kind) {
    const bool block = kind == TokenKind::kBlockBegin;
    const std::string_view close = block ? "%}" : "}}";
    while (true) {
      if (at_ >= source_.size()) return;  // the parser sees the end inside of the tag
      if (open_.empty()) {
        const std::size_t tag = at_;
        if (closes(close, block, block)) {
          const std::size_t after = at_;
          at_ = tag;
          emit(block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd);
          at_ = after;
          return;
        }
      }
      const std::size_t before = at_;
      skip_space();
      if (at_ == before) token();
    }
  }

  void token() {
    const char c = peek();
    if (is_digit(c)) return number();
    if (is_word(c)) return name();
    if (c == '\'' || c == '"') return string(c);
    if (static_cast<unsigned char>(c) >= 0x80)
      fail("names with characters beyond ASCII are not supported");
    for (const std::string_view op : kOperators) {
      if (!follows(op)) continue;
      balance(op[0]);
      emit(TokenKind::kOperator, op);
      at_ += op.size();
      return;
    }
    fail(fmt::format("unexpected char '{}'", c));
  }

  void balance(char c) {
    if (c == '{' || c == '(' || c == '[') {
      open_ += c == '(' ? ')' : static_cast<char>(c + 2);
    } else if (c == '}' || c == ')' || c == ']') {
      if (open_.empty()) fail(fmt::format("unexpected '{}'", c));
      if (open_.back() != c) fail(fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
      open_.pop_back();
    }
  }

  void name() {
    std::size_t end = at_;
    while (end < source_.size() && is_word(source_[end])) ++end;
    if (end < source_.size() && static_cast<unsigned char>(source_[end]) >= 0x80) {
      fail("names with characters beyond ASCII are not supported");
    }
    emit(TokenKind::kName, source_.substr(at_, end - at_));
    at_ = end;
  }

  /// Digits with single underscores between them, from `from` on.
  std::size_t digits(std::size_t from) const {
    std::size_t end = from;
    while (end < source_.size() && (is_digit(source_[end]) ||
                                    (source_[end] == '_' && end > from && source_[end - 1] != '_' &&
                                     end + 1 < source_.size() && is_digit(source_[end + 1])))) {
      ++end;
    }
    return end;
  }

  void number() {
    std::size_t end = digits(at_);
    bool is_float = false;
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    if (!after_dot && end + 1 < source_.size() && source_[end] == '.' &&
        is_digit(source_[end + 1])) {
      end = digits(end + 1);
      is_float = true;
    }
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const std::size_t sign =
          end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? 1 : 0;
      if (end + 1 + sign < source_.size() && is_digit(source_[end + 1 + sign])) {
        end = digits(end + 1 + sign);
        is_float = true;
      }
    }
    std::string plain(source_.substr(at_, end - at_));
    std::erase(plain, '_');
    const bool odd = !is_float && plain.size() > 1 && plain[0] == '0';
    const char next = end < source_.size() ? source_[end] : '\0';
    if (odd || (!is_float && plain == "0" && is_word(next))) {
      fail("numbers that begin with 0 are not supported");
    }
    Token& token = emit(is_float ? TokenKind::kFloat : TokenKind::kInteger);
    const char* last = plain.data() + plain.size();
    const auto result = is_float ? std::from_chars(plain.data(), last, token.number)
                                 : std::from_chars(plain.data(), last, token.integer);
    if (result.ec != std::errc() || result.ptr != last) fail("a number is out of range");
    at_ = end;
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(fmt::format("unexpected char '{}'", quote));
    const std::string_view body = source_.substr(at_ + 1, end - at_ - 1);
    emit(TokenKind::kString).text = unescape(body);
    at_ = end + 1;
  }

  /// Python's escapes in a string literal.
  std::string unescape(std::string_view body) {
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\') {
        out += body[i];
        continue;
      }
      ++i;  // the scan above made sure that something follows
      static constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
      const std::size_t simple = kFrom.find(body[i]);
      if (body[i] == '\n') continue;  // a backslash joins lines
      if (simple != std::string_view::npos) {
        out += kTo[simple];
      } else if (body[i] == 'x' || body[i] == 'u' || body[i] == 'U') {
        i += code_point(out, body.substr(i + 1), body[i] == 'x' ? 2 : body[i] == 'u' ? 4 : 8);
      } else if (body[i] >= '0' && body[i] <= '7') {
        i += octal(out, body.substr(i)) - 1;
      } else if (body[i] == 'N') {
        fail("\\N{...} in a string is not supported");
      } else {
        out += '\\';
        out += body[i];
      }
    }
    return out;
  }

  std::size_t code_point(std::string& out, std::string_view digits, std::size_t count) {
    std::uint32_t value = 0;
    const std::string_view hex = digits.substr(0, count);
    const auto result = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (hex.size() < count || result.ptr != hex.data() + hex.size())
      fail("a truncated escape in a string");
    if (value > 0x10FFFF) fail("an illegal Unicode character in a string");
    if (value >= 0xD800 && value < 0xE000) fail("surrogates in a string are not supported");
    utf8_append(out, value);
    return count;
  }

  std::size_t octal(std::string& out, std::string_view digits) {
    std::uint32_t value = 0;
    std::size_t n = 0;
    while (n < 3 && n < digits.size() && digits[n] >= '0' && digits[n] <= '7') {
      value = value * 8 + static_cast<std::uint32_t>(digits[n++] - '0');
    }
    utf8_append(out, value);
    return n;
  }

  std::string text_;
  std::string_view source_;
  std::vector<Token> out_;
  std::string open_;  // closing brackets that are awaited
  std::size_t at_ = 0, counted_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
  bool line_starting_ = true;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace cyb::tmpl
