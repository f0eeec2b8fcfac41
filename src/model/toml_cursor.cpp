// The streaming TOML reader. Iterative throughout: nesting in the input costs a counter, no stack.
#include "model/toml_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

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
  std::array<std::int16_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < 10; ++i) values['0' + i] = static_cast<std::int16_t>(i);
  for (std::size_t i = 0; i < 6; ++i) {
    values['a' + i] = values['A' + i] = static_cast<std::int16_t>(10 + i);
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

}  // namespace

Error TomlCursor::error(std::string_view why) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
  const auto lines = std::count(text_.begin(), end, '\n');
  return toml_error(part_, static_cast<std::uint64_t>(lines) + 1, why);
}

void TomlCursor::skip_spaces() noexcept {
  while (peek() == ' ' || peek() == '\t') ++at_;
}

void TomlCursor::skip_blank_run() noexcept {
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

Result<void> TomlCursor::rest_of_line() {
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
    CYB_TRY(escape(scratch_));
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
    return escape(scratch_);
  }
  while (peek() == ' ' || peek() == '\t' || peek() == '\n') ++at_;
  return {};
}

/// After the back-slash: appends what the escape stands for.
Result<void> TomlCursor::escape(std::string& out) {
  const char kind = peek();
  if (const char c = simple_escape(kind)) {
    out += c;
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
  utf8_append(out, code_point);
  return {};
}

/// `uXXXX` of three UTF-8 bytes, the escape that most tokens need. False, and nothing is done, for
/// anything else.
bool TomlCursor::quick_escape(std::string& out) {
  if (text_.size() - at_ < 5 || text_[at_] != 'u') return false;
  unsigned code_point = 0;
  int all = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    const int digit = kHexDigits[static_cast<unsigned char>(text_[at_ + i])];
    all |= digit;
    code_point = code_point << 4 | static_cast<unsigned>(digit);
  }
  if (all < 0 || code_point < 0x800 || (code_point & 0xF800u) == 0xD800u) return false;
  const auto byte = [](unsigned value) {
    return static_cast<char>(static_cast<unsigned char>(value));
  };
  const char bytes[] = {byte(0xE0 | code_point >> 12), byte(0x80 | (code_point >> 6 & 0x3F)),
                        byte(0x80 | (code_point & 0x3F))};
  out.append(bytes, 3);
  at_ += 5;
  return true;
}

Result<void> TomlCursor::append_string(std::string& out) {
  if (peek() != '"' || text_.substr(at_).starts_with("\"\"\"")) {
    CYB_ASSIGN(const std::string_view text, string());
    out.append(text);
    return {};
  }
  const std::size_t before = out.size();
  for (std::size_t begin = ++at_;; begin = at_) {
    while (at_ < text_.size() && !kStops[static_cast<unsigned char>(text_[at_])]) ++at_;
    const char stop = peek();
    if (stop != '"' && stop != '\\') return fail(error("string is not closed"));
    out.append(text_.data() + begin, at_ - begin);
    ++at_;
    if (stop == '"') break;
    if (!quick_escape(out)) CYB_TRY(escape(out));
  }
  if (out.size() - before > kMaxStringBytes)
    return fail(error("string is longer than 16777216 bytes"));
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
  if (const auto value = short_number()) return *value;
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
