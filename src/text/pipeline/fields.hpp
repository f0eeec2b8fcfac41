// Fields: the fields of one component of a tokenizer.json. Each is asked for by name and type;
// a field that nobody asked for is refused, so that nothing which may change ids is skipped.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::text {

class Fields {
 public:
  /// `object` must outlive this. `where`: "normalizer", "decoder"...
  Fields(std::string_view where, const nlohmann::json& object);

  const std::string& type() const noexcept { return type_; }

  /// The value of `key`; null where it is absent or null.
  const nlohmann::json& raw(const char* key);
  Result<bool> flag(const char* key, bool fallback);
  Result<std::string> text(const char* key, std::optional<std::string> fallback = {});
  Result<std::int64_t> integer(const char* key, std::int64_t min, std::int64_t max,
                               std::optional<std::int64_t> fallback = {});
  /// Errors: NotBuilt naming a field that was not asked for.
  Result<void> done() const;
  /// NotBuilt: `tokenizer.json: <where> <type>: <what>`.
  Error refused(std::string_view what) const;

 private:
  std::string where_, type_;
  const nlohmann::json& object_;
  std::vector<std::string_view> known_{"type"};
};

/// The steps of a component: none for null, those of a Sequence (which may be nested), or itself.
Result<std::vector<nlohmann::json>> flat_steps(std::string_view where,
                                               const nlohmann::json& component);

}  // namespace cyb::text
