// ConfigReader: checked access to one JSON object of a checkpoint; remembers what was read, so that
// keys nobody looked at can be refused.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::hf {

class ConfigReader {
 public:
  /// Borrows `object`, which must be a JSON object. `prefix` is shown before keys ("text_config.").
  explicit ConfigReader(const nlohmann::json& object, std::string prefix = {});

  /// Marks the key as read. Null when absent or JSON null.
  const nlohmann::json* find(std::string_view key);
  /// Present, be it null.
  bool has(std::string_view key) const;
  void ignore(std::string_view key) { find(key); }

  // Absent or null: nullopt. Other types: InvalidConfig naming the key.
  Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t min,
                                              std::int64_t max);
  Result<std::optional<double>> number(std::string_view key);  // finite
  Result<std::optional<bool>> boolean(std::string_view key);
  Result<std::optional<std::string>> text(std::string_view key);
  Result<std::vector<std::string>> texts_or_empty(std::string_view key);
  /// One id or a list of ids; empty when absent.
  Result<std::vector<std::int64_t>> ids(std::string_view key);

  /// Keys that nobody asked for and whose value is not null, false, 0, "", [] or {}; in order.
  std::vector<std::string> unread() const;
  std::string shown(std::string_view key) const { return prefix_ + std::string(key); }
  std::unexpected<Error> refuse(std::string_view key, std::string_view why) const;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
};

/// A JSON value on one line, shortened.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace cyb::hf
