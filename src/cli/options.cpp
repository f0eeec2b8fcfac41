// Options on CLI11. Values arrive as text and are parsed here with std::from_chars, never by the
// library.
#include "cli/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

namespace cyb::cli {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) noexcept {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// A validator of the library: an empty text means that the value is right.
std::string range_problem(std::string_view text, Options::Range<std::uint64_t> range) {
  const auto value = parse_integer(text);
  if (value && *value >= range.min && *value <= range.max) return {};
  return fmt::format("\"{}\" is not a whole number from {} to {}", text, range.min, range.max);
}

std::string range_problem(std::string_view text, Options::Range<double> range) {
  const auto value = parse_real(text);
  if (value && *value >= range.min && *value <= range.max) return {};
  return fmt::format("\"{}\" is not a number from {} to {}", text, range.min, range.max);
}

/// What stands alone must say something.
CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "the empty text is no value" : std::string(); },
      "");
}

std::string list_problem(std::string_view text, Options::Range<std::uint64_t> range) {
  const std::vector<std::string_view> items = split_list(text);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].empty()) return fmt::format("\"{}\": element {} is empty", text, i + 1);
    if (std::string problem = range_problem(items[i], range); !problem.empty()) return problem;
  }
  return {};
}

template <class T>
CLI::Validator in_range(Options::Range<T> range) {
  return CLI::Validator([range](std::string& text) { return range_problem(text, range); }, "");
}

}  // namespace

std::optional<std::uint64_t> parse_integer(std::string_view text) noexcept {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_real(std::string_view text) noexcept {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::pair<std::string_view, std::string_view>> split_named(
    std::string_view text) noexcept {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    const std::size_t comma = text.find(',');
    items.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

void Options::positional(const std::string& name, std::string& target, const std::string& help) {
  app_.add_option(name, target, help)->required()->check(not_empty())->type_name("");
}

void Options::optional_positional(const std::string& name, std::optional<std::string>& target,
                                  const std::string& help) {
  app_.add_option_function<std::string>(
          name, [&target](const std::string& text) { target = text; }, help)
      ->type_name("");
}

void Options::text(const std::string& names, std::string& target, const std::string& value,
                   const std::string& help) {
  app_.add_option(names, target, help)->check(not_empty())->type_name(value);
}

void Options::optional_text(const std::string& names, std::optional<std::string>& target,
                            const std::string& value, const std::string& help, bool may_be_empty) {
  CLI::Option* option = app_.add_option_function<std::string>(
      names, [&target](const std::string& text) { target = text; }, help);
  option->type_name(value);
  if (!may_be_empty) option->check(not_empty());
}

void Options::texts(const std::string& names, std::vector<std::string>& target,
                    const std::string& value, const std::string& help) {
  const auto take = [&target](const CLI::results_t& texts) {
    target = texts;
    return true;
  };
  CLI::Option* option = app_.add_option(names, take, help);
  if (!names.starts_with('-')) option->expected(-1);
  option->check(not_empty())
      ->type_name(value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Options::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag(names, target, help)
      ->disable_flag_override()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

void Options::integer(const std::string& names, std::optional<std::uint64_t>& target,
                      Range<std::uint64_t> range, const std::string& value,
                      const std::string& help) {
  app_.add_option_function<std::string>(
          names, [&target](const std::string& text) { target = parse_integer(text); }, help)
      ->check(in_range(range))
      ->type_name(value);
}

void Options::real(const std::string& names, std::optional<double>& target, Range<double> range,
                   const std::string& value, const std::string& help) {
  app_.add_option_function<std::string>(
          names, [&target](const std::string& text) { target = parse_real(text); }, help)
      ->check(in_range(range))
      ->type_name(value);
}

void Options::integers(const std::string& names, std::vector<std::uint32_t>& target,
                       Range<std::uint64_t> range, const std::string& value,
                       const std::string& help) {
  const auto check = [range](std::string& text) { return list_problem(text, range); };
  const auto read = [&target](const std::string& text) {
    target.clear();
    for (const std::string_view item : split_list(text)) {
      target.push_back(static_cast<std::uint32_t>(parse_integer(item).value_or(0)));
    }
  };
  app_.add_option_function<std::string>(names, read, help)
      ->check(CLI::Validator(check, ""))
      ->type_name(value);
}

void Options::examples(const std::string& text) {
  app_.footer(text);
}

}  // namespace cyb::cli
