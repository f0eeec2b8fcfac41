// TomlCursor: a forward reader over the TOML subset of the big text parts (tensors, vocab). No
// document tree: a caller pulls keys and values one by one, and strings without escapes are views.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb {

/// F05: a byte-order mark, a CR (unless `allow_cr`) or bytes that are not UTF-8.
Result<void> check_text(std::string_view text, std::string_view part, bool allow_cr = false);

class TomlCursor {
 public:
  /// `text` passed check_text; `part` names it in errors. Both must outlive the cursor.
  TomlCursor(std::string_view text, std::string_view part) : text_(text), part_(part) {}

  bool at_end() const noexcept { return at_ >= text_.size(); }
  /// The next byte, 0 at the end.
  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::size_t position() const noexcept { return at_; }
  std::string_view rest() const noexcept { return text_.substr(at_); }
  std::string_view text_from(std::size_t begin) const noexcept {
    return text_.substr(begin, at_ - begin);
  }

  /// Skips spaces, tabs, line feeds and comments.
  void skip_blank() noexcept {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '#') skip_blank_run();
  }
  void skip_spaces() noexcept;
  bool consume(char c) noexcept {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  /// Spaces, then `c`. F02 otherwise.
  Result<void> expect(char c);
  /// Spaces and a comment up to the end of the line or text. F02 on anything else.
  Result<void> end_of_line() { return consume('\n') ? Result<void>() : rest_of_line(); }
  /// `<digits> = ` as writers put it: the number. nullopt, and nothing is consumed, for any other
  /// spelling of a key and for a number above `max`. A dictionary has hundreds of thousands.
  std::optional<std::uint64_t> quick_index(std::uint64_t max) noexcept {
    std::uint64_t value = 0;
    std::size_t end = at_;
    while (end < text_.size() && end - at_ < 9 && text_[end] >= '0' && text_[end] <= '9')
      value = 10 * value + static_cast<std::uint64_t>(text_[end++] - '0');
    const bool canonical = end > at_ && (text_[at_] != '0' || end - at_ == 1);
    if (!canonical || value > max || text_.substr(end, 3) != " = ") return std::nullopt;
    at_ = end + 3;
    return value;
  }

  /// `[name]` at the cursor, one key. F02 on `[[`, dotted names and bad syntax.
  Result<std::string_view> table_header();
  /// One bare or quoted key. The view lives until the next call.
  Result<std::string_view> key();
  /// A multi-line string at its opening quotes. The view lives until the next call.
  Result<std::string_view> multi_line_string();
  /// One key that is a decimal number. F02 if it is not or exceeds `max`.
  Result<std::uint64_t> index_key(std::uint64_t max);
  /// A basic or literal one-line string. The view lives until the next call.
  Result<std::string_view> string();
  /// The same, put at the end of `out`.
  Result<void> append_string(std::string& out);
  Result<std::int64_t> integer();
  /// A float or an integer; `inf` and `nan` are refused.
  Result<double> number();
  /// The run of characters that numbers, booleans and dates are made of; may be empty.
  std::string_view scalar_text() noexcept;
  /// Skips one value of any type.
  Result<void> skip_value();
  /// Inside an array after `[` or an element: true if another element follows, false after `]`.
  /// `first` is cleared.
  Result<bool> next_element(bool& first);

  /// F02 at the line of the cursor.
  Error error(std::string_view why) const;

 private:
  std::optional<double> short_number() noexcept;
  Result<std::string_view> basic_string();
  Result<std::string_view> literal_string();
  void skip_blank_run() noexcept;
  Result<void> rest_of_line();
  Result<void> escape(std::string& out);
  bool quick_escape(std::string& out);
  Result<void> continuation_or_escape();

  std::string_view text_;
  std::string_view part_;
  std::size_t at_ = 0;
  std::string scratch_;
};

/// `text` as a TOML basic string with quotes. Control characters are escaped; with `ascii_only`
/// every code point above U+007E too (\uXXXX, \UXXXXXXXX, lower-case hex).
void append_toml_string(std::string& out, std::string_view text, bool ascii_only);
/// Bare where TOML allows it, else quoted.
void append_toml_key(std::string& out, std::string_view key);

}  // namespace cyb
