// JSON to TOML values and back. TOML has no null: a key with a null is left out, which means the
// same to every component. The depth is bounded by the parsers of both sides.
#include "text/pipeline/pipeline_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace cyb {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 12;

Error bad(std::string_view what) {
  return invalid_config("tokenizer.pipeline", what);
}

// NOLINTBEGIN(misc-no-recursion): kMaxDepth bounds it, and the depth of what a .model holds the
// TOML reader.
Result<ConfigTable> table_of(const json& object, int depth);

Result<ConfigValue> value_of(const json& value, int depth) {
  if (depth > kMaxDepth) return fail(bad("is nested too deeply"));
  if (value.is_boolean()) return ConfigValue(value.get<bool>());
  if (value.is_number_integer()) return ConfigValue(value.get<std::int64_t>());
  if (value.is_number()) return ConfigValue(value.get<double>());
  if (value.is_string()) return ConfigValue(value.get<std::string>());
  if (value.is_object()) {
    CYB_ASSIGN(ConfigTable table, table_of(value, depth + 1));
    return ConfigValue(std::move(table));
  }
  if (!value.is_array()) return fail(bad("a value that cannot be stored"));
  ConfigArray out;
  for (const json& item : value) {
    CYB_ASSIGN(ConfigValue made, value_of(item, depth + 1));
    out.push_back(std::move(made));
  }
  return ConfigValue(std::move(out));
}

Result<ConfigTable> table_of(const json& object, int depth) {
  ConfigTable out;
  for (const auto& [key, value] : object.items()) {
    if (value.is_null()) continue;
    CYB_ASSIGN(ConfigValue made, value_of(value, depth));
    out.set(key, std::move(made));
  }
  return out;
}

json json_of(const ConfigValue& value);

json json_of(const ConfigTable& table) {
  json out = json::object();
  for (const auto& [key, value] : table.items()) out[key] = json_of(value);
  return out;
}

json json_of(const ConfigValue& value) {
  if (const bool* flag = value.boolean()) return *flag;
  if (const std::int64_t* number = value.integer()) return *number;
  if (const double* number = value.real()) return *number;
  if (const std::string* text = value.string()) return *text;
  if (const ConfigTable* table = value.table()) return json_of(*table);
  json out = json::array();
  if (const ConfigArray* array = value.array()) {
    for (const ConfigValue& item : *array) out.push_back(json_of(item));
  }
  return out;
}
// NOLINTEND(misc-no-recursion)

}  // namespace

Result<ConfigTable> pipeline_table(std::string_view pipeline) {
  const json document = json::parse(pipeline, nullptr, false);
  if (!document.is_object()) return fail(bad("is not a table"));
  return table_of(document, 0);
}

std::string pipeline_text(const ConfigTable& table) {
  return json_of(table).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cyb
