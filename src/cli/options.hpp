// Options of a command, declared once and checked as they are read: the only door to the option
// library. Numbers are parsed whole and against their range; everything that is wrong with a
// command line is a usage error (exit code 1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace cyb::cli {

class OptionValues;

class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}
  /// Of all options of the command, also those that are declared later.
  OptionValues values() const;

  /// A required argument; the empty text is refused.
  void positional(const std::string& name, std::string& target, const std::string& help);
  void optional_positional(const std::string& name, std::optional<std::string>& target,
                           const std::string& help);
  /// `names`: "-o,--output"; `value`: what stands for the value in the help. The empty text is
  /// refused, but by optional_text() where `may_be_empty`.
  void text(const std::string& names, std::string& target, const std::string& value,
            const std::string& help);
  void optional_text(const std::string& names, std::optional<std::string>& target,
                     const std::string& value, const std::string& help, bool may_be_empty = false);
  /// May be given several times. A name without - is that of the arguments.
  void texts(const std::string& names, std::vector<std::string>& target, const std::string& value,
             const std::string& help);
  void flag(const std::string& names, bool& target, const std::string& help);
  /// min <= value <= max.
  template <class T>
  struct Range {
    T min, max;
  };
  void integer(const std::string& names, std::optional<std::uint64_t>& target,
               Range<std::uint64_t> range, const std::string& value, const std::string& help);
  void real(const std::string& names, std::optional<double>& target, Range<double> range,
            const std::string& value, const std::string& help);
  /// "1,2,3"; no element may be empty.
  void integers(const std::string& names, std::vector<std::uint32_t>& target,
                Range<std::uint64_t> range, const std::string& value, const std::string& help);
  /// Text after the options of --help.
  void examples(const std::string& text);

 private:
  CLI::App& app_;
};

/// Whole text as a number; nullopt for anything else.
std::optional<std::uint64_t> parse_integer(std::string_view text) noexcept;
std::optional<double> parse_real(std::string_view text) noexcept;
/// NAME=VALUE cut at its last `=`, as names may hold one; nullopt where there is no name.
std::optional<std::pair<std::string_view, std::string_view>> split_named(
    std::string_view text) noexcept;
/// The elements between commas: one more than there are commas, also where some are empty.
std::vector<std::string_view> split_list(std::string_view text);

}  // namespace cyb::cli
