// ConfigValue: the TOML subset of config and chat parts as an ordered tree of ours, with checked
// access (F31 errors) and canonical output.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace cyb {

class ConfigTable;
class ConfigValue;
using ConfigArray = std::vector<ConfigValue>;

class ConfigValue {
 public:
  ConfigValue(bool v) : value_(v) {}                      // NOLINT(google-explicit-constructor)
  ConfigValue(std::int64_t v) : value_(v) {}              // NOLINT(google-explicit-constructor)
  ConfigValue(int v) : value_(std::int64_t{v}) {}         // NOLINT(google-explicit-constructor)
  ConfigValue(double v) : value_(v) {}                    // NOLINT(google-explicit-constructor)
  ConfigValue(std::string v) : value_(std::move(v)) {}    // NOLINT(google-explicit-constructor)
  ConfigValue(const char* v) : value_(std::string(v)) {}  // NOLINT(google-explicit-constructor)
  ConfigValue(ConfigArray v);                             // NOLINT(google-explicit-constructor)
  ConfigValue(ConfigTable v);                             // NOLINT(google-explicit-constructor)

  const bool* boolean() const noexcept { return std::get_if<bool>(&value_); }
  const std::int64_t* integer() const noexcept { return std::get_if<std::int64_t>(&value_); }
  const double* real() const noexcept { return std::get_if<double>(&value_); }
  std::optional<double> number() const noexcept;  // integer or real
  const std::string* string() const noexcept { return std::get_if<std::string>(&value_); }
  const ConfigArray* array() const noexcept;
  const ConfigTable* table() const noexcept;
  ConfigTable* table() noexcept;
  std::string_view type_name() const noexcept;  // "integer", "array", ...

 private:
  // An array never changes: copies of a value share it, and copying does not walk it.
  std::variant<bool, std::int64_t, double, std::string, std::shared_ptr<const ConfigArray>,
               std::shared_ptr<ConfigTable>>
      value_;
};

/// An ordered table. Keys keep insertion order; scalars are written before sub-tables.
class ConfigTable {
 public:
  bool empty() const noexcept { return items_.empty(); }
  const std::vector<std::pair<std::string, ConfigValue>>& items() const noexcept { return items_; }
  /// Direct child; null when absent.
  const ConfigValue* find(std::string_view key) const noexcept;
  /// Dotted path ("architecture.hidden_size"); null when absent.
  const ConfigValue* at(std::string_view path) const noexcept;
  void set(std::string key, ConfigValue value);  // replaces
  /// As set, for a key that is known to be new: no search.
  void append(std::string key, ConfigValue value);
  const ConfigTable* find_table(std::string_view key) const noexcept;
  ConfigTable& table(std::string_view key);  // creates
  bool erase(std::string_view key);

  // Checked access by dotted path. Missing without default, wrong type, out of range: F31 `config:
  // <key>: ...`.
  Result<std::int64_t> integer(std::string_view path) const;
  Result<std::int64_t> integer_or(std::string_view path, std::int64_t fallback) const;
  Result<double> number(std::string_view path) const;  // integers are accepted
  Result<double> number_or(std::string_view path, double fallback) const;
  Result<bool> boolean_or(std::string_view path, bool fallback) const;
  Result<std::string> string(std::string_view path) const;
  Result<std::string> string_or(std::string_view path, std::string fallback) const;
  Result<std::vector<std::int64_t>> integers_or_empty(std::string_view path) const;
  Result<std::vector<double>> numbers_or_empty(std::string_view path) const;
  Result<std::vector<std::string>> strings_or_empty(std::string_view path) const;
  Result<std::vector<bool>> booleans_or_empty(std::string_view path) const;
  /// integer(path) with min <= value <= max, else F31 "out of range: <rule>".
  Result<std::int64_t> integer_in(std::string_view path, std::int64_t min, std::int64_t max) const;

 private:
  std::vector<std::pair<std::string, ConfigValue>> items_;
};

/// Parses TOML text; keys keep the order of their first appearance. Dates and nesting over
/// 16 levels are refused, and so are more than kMaxTomlValues values (a document tree
/// costs many times its text). Errors: F02 `<part>: TOML error at line <l>: <why>`, F05, F09.
inline constexpr std::size_t kMaxTomlValues = 131072;
Result<ConfigTable> parse_toml(std::string_view text, std::string_view part);

/// Canonical TOML: keys in order, scalars first, then [tables]; shortest round-trip numbers; floats
/// keep a dot or exponent.
std::string write_toml(const ConfigTable& table);

}  // namespace cyb
