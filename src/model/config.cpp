// ConfigTable and ConfigValue: ordered storage and checked access with the texts of F31.
#include "model/config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/format_error.hpp"

namespace cyb {
namespace {

/// Reads every element of the array at `path` with `read`; absent: empty.
template <class T, class Read>
Result<std::vector<T>> elements(const ConfigTable& table, std::string_view path,
                                std::string_view want, Read read) {
  std::vector<T> out;
  const ConfigValue* value = table.at(path);
  if (value == nullptr) return out;
  const ConfigArray* array = value->array();
  if (array == nullptr) return fail(config_wrong_type(path, want));
  out.reserve(array->size());
  for (const ConfigValue& element : *array) {
    std::optional<T> item = read(element);
    if (!item) return fail(config_wrong_type(path, want));
    out.push_back(*std::move(item));
  }
  return out;
}

template <class T>
std::optional<T> copy(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

}  // namespace

ConfigValue::ConfigValue(ConfigTable v) : value_(std::make_shared<ConfigTable>(std::move(v))) {}

// A table is shared on copy and never changed through a shared handle: table() below copies first.
ConfigValue::ConfigValue(ConfigArray v)
    : value_(std::make_shared<const ConfigArray>(std::move(v))) {}

const ConfigArray* ConfigValue::array() const noexcept {
  const auto* held = std::get_if<std::shared_ptr<const ConfigArray>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

const ConfigTable* ConfigValue::table() const noexcept {
  const auto* held = std::get_if<std::shared_ptr<ConfigTable>>(&value_);
  return held == nullptr ? nullptr : held->get();
}

ConfigTable* ConfigValue::table() noexcept {
  auto* held = std::get_if<std::shared_ptr<ConfigTable>>(&value_);
  if (held == nullptr) return nullptr;
  if (held->use_count() > 1) *held = std::make_shared<ConfigTable>(**held);
  return held->get();
}

std::optional<double> ConfigValue::number() const noexcept {
  if (const double* value = real()) return *value;
  if (const std::int64_t* value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

std::string_view ConfigValue::type_name() const noexcept {
  constexpr std::string_view kNames[] = {"bool", "integer", "float", "string", "array", "table"};
  return kNames[value_.index()];
}

const ConfigValue* ConfigTable::find(std::string_view key) const noexcept {
  const auto it = std::ranges::find(items_, key, &std::pair<std::string, ConfigValue>::first);
  return it == items_.end() ? nullptr : &it->second;
}

const ConfigTable* ConfigTable::find_table(std::string_view key) const noexcept {
  const ConfigValue* value = find(key);
  return value == nullptr ? nullptr : value->table();
}

const ConfigValue* ConfigTable::at(std::string_view path) const noexcept {
  const ConfigTable* table = this;
  while (table != nullptr) {
    const std::size_t dot = path.find('.');
    const ConfigValue* value = table->find(path.substr(0, dot));
    if (dot == std::string_view::npos || value == nullptr) return value;
    table = value->table();
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

void ConfigTable::append(std::string key, ConfigValue value) {
  items_.emplace_back(std::move(key), std::move(value));
}

void ConfigTable::set(std::string key, ConfigValue value) {
  const auto it = std::ranges::find(items_, key, &std::pair<std::string, ConfigValue>::first);
  if (it != items_.end()) {
    it->second = std::move(value);
  } else {
    append(std::move(key), std::move(value));
  }
}

ConfigTable& ConfigTable::table(std::string_view key) {
  const auto it = std::ranges::find(items_, key, &std::pair<std::string, ConfigValue>::first);
  if (it != items_.end()) {
    if (it->second.table() == nullptr) it->second = ConfigValue(ConfigTable());
    return *it->second.table();
  }
  append(std::string(key), ConfigTable());
  return *items_.back().second.table();
}

bool ConfigTable::erase(std::string_view key) {
  return std::erase_if(items_, [&](const auto& item) { return item.first == key; }) != 0;
}

Result<std::int64_t> ConfigTable::integer(std::string_view path) const {
  const ConfigValue* value = at(path);
  if (value == nullptr) return fail(config_missing(path));
  if (const std::int64_t* number = value->integer()) return *number;
  return fail(config_wrong_type(path, "integer"));
}

Result<std::int64_t> ConfigTable::integer_or(std::string_view path, std::int64_t fallback) const {
  if (at(path) == nullptr) return fallback;
  return integer(path);
}

Result<std::int64_t> ConfigTable::integer_in(std::string_view path, std::int64_t min,
                                             std::int64_t max) const {
  CYB_ASSIGN(const std::int64_t value, integer(path));
  if (value < min || value > max) {
    return fail(config_out_of_range(path, fmt::format("{} is not in {}..{}", value, min, max)));
  }
  return value;
}

Result<double> ConfigTable::number(std::string_view path) const {
  const ConfigValue* value = at(path);
  if (value == nullptr) return fail(config_missing(path));
  if (const auto number = value->number()) return *number;
  return fail(config_wrong_type(path, "float"));
}

Result<double> ConfigTable::number_or(std::string_view path, double fallback) const {
  if (at(path) == nullptr) return fallback;
  return number(path);
}

Result<bool> ConfigTable::boolean_or(std::string_view path, bool fallback) const {
  const ConfigValue* value = at(path);
  if (value == nullptr) return fallback;
  if (const bool* flag = value->boolean()) return *flag;
  return fail(config_wrong_type(path, "bool"));
}

Result<std::string> ConfigTable::string(std::string_view path) const {
  const ConfigValue* value = at(path);
  if (value == nullptr) return fail(config_missing(path));
  if (const std::string* text = value->string()) return *text;
  return fail(config_wrong_type(path, "string"));
}

Result<std::string> ConfigTable::string_or(std::string_view path, std::string fallback) const {
  if (at(path) == nullptr) return fallback;
  return string(path);
}

Result<std::vector<std::int64_t>> ConfigTable::integers_or_empty(std::string_view path) const {
  return elements<std::int64_t>(*this, path, "array of integer",
                                [](const ConfigValue& v) { return copy(v.integer()); });
}

Result<std::vector<double>> ConfigTable::numbers_or_empty(std::string_view path) const {
  return elements<double>(*this, path, "array of float",
                          [](const ConfigValue& v) { return v.number(); });
}

Result<std::vector<std::string>> ConfigTable::strings_or_empty(std::string_view path) const {
  return elements<std::string>(*this, path, "array of string",
                               [](const ConfigValue& v) { return copy(v.string()); });
}

Result<std::vector<bool>> ConfigTable::booleans_or_empty(std::string_view path) const {
  return elements<bool>(*this, path, "array of bool",
                        [](const ConfigValue& v) { return copy(v.boolean()); });
}

}  // namespace cyb
