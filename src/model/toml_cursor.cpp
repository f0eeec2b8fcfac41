// The streaming TOML reader. Iterative throughout: nesting in the input costs a counter, no stack.
#include "model/toml_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "model/format_error.hpp"

namespace cyb {
namespace {

bool is_bare(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

bool is_control(char c) noexcept {
  const auto u = static_cast<unsigned char>(c);
  return (u < 0x20 && c != '\t') || u == 0x7F;
}

/// Value of a hex digit, -1 for other bytes.
constexpr auto kHexDigits = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < 10; ++i) values['0' + i] = static_cast<std::int8_t>(i);
  for (std::size_t i = 0; i < 6; ++i) {
    values['a' + i] = values['A' + i] = static_cast<std::int8_t>(10 + i);
  }
  return values;
}();

/// Bytes at which the scan of a basic string stops: quote, back-slash, control characters.
constexpr auto kStops = [] {
  std::array<bool, 256> stops{};
  for (std::size_t c = 0; c < 0x20; ++c) stops[c] = c != '\t';
  stops[0x7F] = stops['"'] = stops['\\'] = true;
  return stops;
}();

/// The character that a one-letter escape stands for, 0 if there is none.
char simple_escape(char c) noexcept {
  switch (c) {
    case 'b':
      return '\b';
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'f':
      return '\f';
    case 'r':
      return '\r';
    case '"':
      return '"';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

/// Number of leading ASCII bytes, eight at a time.
std::size_t ascii_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

std::size_t find_invalid(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    at += ascii_prefix(text.substr(at));
    while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80) {
      const Utf8Char c = utf8_next(text, at);
      if (!c.valid) return at;
      at += c.size;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<void> check_text(std::string_view text, std::string_view part, bool allow_cr) {
  const auto bad = [&](std::string_view what, std::size_t at) {
    return fail(format_error("F05", fmt::format("{}: {} at byte {}", part, what, at)));
  };
  if (text.starts_with("\xEF\xBB\xBF")) return bad("BOM", 0);
  if (!allow_cr) {
    const std::size_t cr = text.find('\r');
    if (cr != std::string_view::npos) return bad("CR", cr);
  }
  const std::size_t invalid = find_invalid(text);
  if (invalid != std::string_view::npos) return bad("invalid UTF-8", invalid);
  return {};
}

Error TomlCursor::error(std::string_view why) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
  const auto lines = std::count(text_.begin(), end, '\n');
  return toml_error(part_, static_cast<std::uint64_t>(lines) + 1, why);
}

void TomlCursor::skip_spaces() noexcept {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

void TomlCursor::skip_blank() noexcept {
  while (true) {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n') ++at_;
    if (peek() != '#') return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

Result<void> TomlCursor::expect(char c) {
  skip_spaces();
  if (!consume(c)) return fail(error(fmt::format("expected '{}'", c)));
  return {};
}

Result<void> TomlCursor::end_of_line() {
  if (consume('\n')) return {};
  skip_spaces();
  if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  if (at_end()) return {};
  if (peek() != '\n') return fail(error("expected the end of the line"));
  ++at_;
  return {};
}

Result<std::string_view> TomlCursor::table_header() {
  CYB_TRY(expect('['));
  if (peek() == '[') return fail(error("arrays of tables are not allowed here"));
  skip_spaces();
  CYB_ASSIGN(const std::string_view name, key());
  skip_spaces();
  if (peek() == '.') return fail(error("a name with dots must be quoted"));
  CYB_TRY(expect(']'));
  CYB_TRY(end_of_line());
  return name;
}

Result<std::string_view> TomlCursor::key() {
  if (peek() == '"' || peek() == '\'') {
    CYB_ASSIGN(const std::string_view quoted, string());
    if (quoted.size() > kMaxKeyBytes) return fail(error("key is longer than 65536 bytes"));
    return quoted;
  }
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
  if (at_ == begin) return fail(error("expected a key"));
  if (at_ - begin > kMaxKeyBytes) return fail(error("key is longer than 65536 bytes"));
  return text_.substr(begin, at_ - begin);
}

Result<std::uint64_t> TomlCursor::index_key(std::uint64_t max) {
  // The common form, `<digits> =`: a dictionary has hundreds of thousands of these.
  std::uint64_t plain = 0;
  std::size_t end_of_digits = at_;
  while (end_of_digits < text_.size() && end_of_digits - at_ < 9 && text_[end_of_digits] >= '0' &&
         text_[end_of_digits] <= '9') {
    plain = 10 * plain + static_cast<std::uint64_t>(text_[end_of_digits++] - '0');
  }
  const bool leading_zero = text_.substr(at_).starts_with('0') && end_of_digits - at_ > 1;
  if (end_of_digits > at_ && !leading_zero && plain <= max &&
      text_.substr(end_of_digits).starts_with(' ')) {
    at_ = end_of_digits;
    return plain;
  }
  CYB_ASSIGN(const std::string_view name, key());
  std::uint64_t value = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, status] = std::from_chars(name.data(), end, value);
  const bool canonical = name == "0" || !name.starts_with('0');
  if (status != std::errc() || stop != end || !canonical) {
    return fail(error(fmt::format("key \"{}\" is not a decimal number", printable(name))));
  }
  if (value > max) return fail(error(fmt::format("key {} exceeds the limit of {}", value, max)));
  return value;
}

Result<std::string_view> TomlCursor::string() {
  if (peek() == '\'') return literal_string();
  if (peek() == '"') return basic_string();
  return fail(error("expected a string"));
}

Result<std::string_view> TomlCursor::literal_string() {
  if (text_.substr(at_).starts_with("'''")) {
    return fail(error("multi-line strings are not allowed here"));
  }
  const std::size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '\'' && !is_control(text_[at_])) ++at_;
  if (peek() != '\'') return fail(error("string is not closed"));
  const std::string_view value = text_.substr(begin, at_ - begin);
  ++at_;
  if (value.size() > kMaxStringBytes) return fail(error("string is longer than 16777216 bytes"));
  return value;
}

Result<std::string_view> TomlCursor::basic_string() {
  if (text_.substr(at_).starts_with("\"\"\"")) {
    return fail(error("multi-line strings are not allowed here"));
  }
  std::size_t begin = ++at_;
  bool escaped = false;
  while (true) {
    while (at_ < text_.size() && !kStops[static_cast<unsigned char>(text_[at_])]) ++at_;
    const char stop = peek();
    if (stop != '"' && stop != '\\') return fail(error("string is not closed"));
    if (stop == '"' && !escaped) break;
    if (!escaped) scratch_.clear();
    escaped = true;
    scratch_.append(text_.substr(begin, at_ - begin));
    ++at_;
    if (stop == '"') break;
    CYB_TRY(escape());
    begin = at_;
  }
  const std::string_view value =
      escaped ? std::string_view(scratch_) : text_.substr(begin, at_ - begin);
  if (!escaped) ++at_;
  if (value.size() > kMaxStringBytes) return fail(error("string is longer than 16777216 bytes"));
  return value;
}

Result<std::string_view> TomlCursor::multi_line_string() {
  const char quote = peek();
  const std::string closing(3, quote);
  at_ += 3;
  consume('\n');  // a line feed right after the opening is not part of the string
  scratch_.clear();
  while (!at_end() && !rest().starts_with(closing)) {
    const char c = text_[at_];
    if (c == '\\' && quote == '"') {
      ++at_;
      CYB_TRY(continuation_or_escape());
      continue;
    }
    if (is_control(c) && c != '\n') return fail(error("control character in a string"));
    scratch_ += c;
    ++at_;
  }
  if (at_end()) return fail(error("string is not closed"));
  at_ += 3;
  // Up to two quotes before the closing ones belong to the string.
  for (int extra = 0; extra < 2 && consume(quote); ++extra) scratch_ += quote;
  if (scratch_.size() > kMaxStringBytes) return fail(error("string is longer than 16777216 bytes"));
  return std::string_view(scratch_);
}

/// A back-slash at the end of a line joins it with the next text.
Result<void> TomlCursor::continuation_or_escape() {
  const std::size_t begin = at_;
  skip_spaces();
  if (peek() != '\n') {
    at_ = begin;
    return escape();
  }
  while (peek() == ' ' || peek() == '\t' || peek() == '\n') ++at_;
  return {};
}

/// After the back-slash: appends what the escape stands for.
Result<void> TomlCursor::escape() {
  const char kind = peek();
  if (const char c = simple_escape(kind)) {
    scratch_ += c;
    ++at_;
    return {};
  }
  if (kind != 'u' && kind != 'U') return fail(error("unknown escape in a string"));
  const std::string_view digits = text_.substr(at_ + 1, kind == 'u' ? 4 : 8);
  char32_t code_point = 0;
  for (const char c : digits) {
    const int digit = kHexDigits[static_cast<unsigned char>(c)];
    if (digit < 0) return fail(error("bad hex digit in a string escape"));
    code_point = code_point << 4 | static_cast<char32_t>(digit);
  }
  if (digits.size() != (kind == 'u' ? 4u : 8u))
    return fail(error("bad hex digit in a string escape"));
  at_ += 1 + digits.size();
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
    return fail(error("string escape is not a Unicode scalar value"));
  }
  utf8_append(scratch_, code_point);
  return {};
}

/// The run of characters that numbers and booleans are made of.
std::string_view TomlCursor::scalar_text() noexcept {
  const std::size_t begin = at_;
  while (at_ < text_.size() &&
         (is_bare(text_[at_]) || text_[at_] == '.' || text_[at_] == '+' || text_[at_] == ':')) {
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

Result<std::int64_t> TomlCursor::integer() {
  const std::size_t begin = at_;
  std::string_view digits = scalar_text();
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const std::string_view magnitude = digits.substr(digits.starts_with('-') ? 1 : 0);
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, value);
  const bool canonical = magnitude == "0" || !magnitude.starts_with('0');
  if (status == std::errc::result_out_of_range && stop == end) {
    at_ = begin;
    return fail(error("integer does not fit 64 bits"));
  }
  if (status != std::errc() || stop != end || !canonical) {
    at_ = begin;
    return fail(error("expected an integer"));
  }
  return value;
}

Result<double> TomlCursor::number() {
  const std::size_t begin = at_;
  std::string_view digits = scalar_text();
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, value);
  if (status != std::errc() || stop != end || !std::isfinite(value)) {
    at_ = begin;
    return fail(error("expected a finite number"));
  }
  return value;
}

Result<bool> TomlCursor::next_element(bool& first) {
  skip_blank();
  if (!first && peek() != ']') {
    if (!consume(',')) return fail(error("expected ',' or ']'"));
    skip_blank();
  }
  first = false;
  return !consume(']');
}

Result<void> TomlCursor::skip_value() {
  std::uint64_t depth = 0;
  do {
    if (depth > 0) skip_blank();
    const char c = peek();
    if (c == '"' || c == '\'') {
      CYB_TRY(string());
    } else if (c == '[' || c == '{') {
      ++depth;
      ++at_;
    } else if (depth > 0 && (c == ']' || c == '}')) {
      --depth;
      ++at_;
    } else if (depth > 0 && (c == ',' || c == '=')) {
      ++at_;
    } else if (scalar_text().empty()) {
      return fail(error("expected a value"));
    }
  } while (depth > 0);
  return {};
}

}  // namespace cyb
