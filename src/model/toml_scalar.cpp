// The grammar of TOML 1.0 for numbers: underscores only between digits, no leading zeros, digits on
// both sides of a point.
#include "model/toml_scalar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

constexpr std::string_view kNotAValue = "expected a value";

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// `text` without its underscores; empty where one is not between two alphanumerics.
std::string without_underscores(std::string_view text) {
  std::string out;
  const auto inner = [&](std::size_t i) {
    return i < text.size() && text[i] != '_' && text[i] != '+' && text[i] != '-' && text[i] != '.';
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || !inner(i - 1) || !inner(i + 1)) {
      return {};
    }
  }
  return out;
}

/// Digits from `at` on; moves it behind them. False where there is none.
bool skip_digits(std::string_view text, std::size_t& at) noexcept {
  const std::size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at > begin;
}

/// 0 or digits without a leading zero, after the sign.
bool skip_integer_part(std::string_view text, std::size_t& at) noexcept {
  const std::size_t begin = at;
  return skip_digits(text, at) && (text[begin] != '0' || at == begin + 1);
}

bool is_float_text(std::string_view text) noexcept {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  if (!skip_integer_part(text, at)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!skip_digits(text, at)) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!skip_digits(text, at)) return false;
  }
  return at == text.size();
}

bool looks_like_date(std::string_view text) noexcept {
  const bool time = text.size() >= 5 && is_digit(text[0]) && text[2] == ':';
  const bool date = text.size() >= 10 && is_digit(text[0]) && text[4] == '-' && text[7] == '-';
  return time || date;
}

std::expected<ConfigValue, std::string_view> integer(std::string_view digits, int base) {
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, value, base);
  if (status == std::errc::result_out_of_range && stop == end) {
    return std::unexpected("integer does not fit 64 bits");
  }
  if (status != std::errc() || stop != end) return std::unexpected(kNotAValue);
  return ConfigValue(value);
}

/// `0x`, `0o`, `0b`; 0 for other text.
int base_of(std::string_view text) noexcept {
  if (text.starts_with("0x")) return 16;
  if (text.starts_with("0o")) return 8;
  return text.starts_with("0b") ? 2 : 0;
}

}  // namespace

std::expected<ConfigValue, std::string_view> parse_toml_scalar(std::string_view text) {
  if (text == "true" || text == "false") return ConfigValue(text == "true");
  if (text.empty()) return std::unexpected(kNotAValue);
  if (looks_like_date(text)) return std::unexpected("dates and times are not allowed");
  const std::string plain = without_underscores(text);
  std::string_view number = plain;
  if (const int base = base_of(number)) {
    number.remove_prefix(2);
    if (number.starts_with('-')) return std::unexpected(kNotAValue);
    return integer(number, base);
  }
  if (number.starts_with('+')) {
    number.remove_prefix(1);
    if (number.starts_with('-')) return std::unexpected(kNotAValue);
  }
  const bool negative = number.starts_with('-');
  const std::string_view magnitude = number.substr(negative ? 1 : 0);
  if (magnitude == "inf") {
    const double inf = std::numeric_limits<double>::infinity();
    return ConfigValue(negative ? -inf : inf);
  }
  if (magnitude == "nan") return ConfigValue(std::numeric_limits<double>::quiet_NaN());
  std::size_t at = 0;
  if (skip_integer_part(magnitude, at) && at == magnitude.size()) return integer(number, 10);
  if (!is_float_text(number)) return std::unexpected(kNotAValue);
  double value = 0;
  const auto status = std::from_chars(number.data(), number.data() + number.size(), value).ec;
  // Too big, or so small that it would silently become 0.
  if (status != std::errc()) return std::unexpected("float does not fit 64 bits");
  return ConfigValue(value);
}

/// `[-]digits[.digits]` and the end of the line, at most 15 digits in all: both parts of the
/// fraction are exact, so that one division rounds rightly. The form of nearly every score.
std::optional<double> TomlCursor::short_number() noexcept {
  constexpr std::array kTens = {1.0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const std::string_view text = text_.substr(at_, 18);
  std::uint64_t value = 0;
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      value = 10 * value + static_cast<std::uint64_t>(text[at] - '0');
    return at - begin;
  };
  const std::size_t n_before = digits();
  std::size_t n_after = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    // A whole number, as most scores are, needs no division.
    if (text.substr(at).starts_with("0\n")) {
      ++at;
    } else if (n_after = digits(); n_after == 0) {
      return std::nullopt;
    }
  }
  if (n_before == 0 || n_before + n_after > 15 || at >= text.size() || text[at] != '\n')
    return std::nullopt;
  at_ += at;
  double magnitude = static_cast<double>(value);
  if (n_after > 0) magnitude /= kTens[n_after];
  return text.front() == '-' ? -magnitude : magnitude;
}

}  // namespace cyb
