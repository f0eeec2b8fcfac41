// Checked access to a JSON object.
#include "import/hf/config_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.hpp"

namespace cyb::hf {
namespace {

bool says_nothing(const nlohmann::json& value) {
  if (value.is_null()) return true;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0.0;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.empty();
}

std::optional<std::int64_t> as_integer(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    return number > INT64_MAX ? std::nullopt : std::optional(static_cast<std::int64_t>(number));
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();  // 8192.0 is meant as 8192
  if (number != std::floor(number) || std::fabs(number) > 9.0e15) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string json_excerpt(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > 80) {
    text.resize(utf8_complete_prefix(std::string_view(text).substr(0, 77)));
    text += "...";
  }
  return text;
}

ConfigReader::ConfigReader(const nlohmann::json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const nlohmann::json* ConfigReader::find(std::string_view key) {
  read_.emplace(key);
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool ConfigReader::has(std::string_view key) const {
  return object_.find(key) != object_.end();
}

std::unexpected<Error> ConfigReader::refuse(std::string_view key, std::string_view why) const {
  return fail(invalid_config(shown(key), why));
}

Result<std::optional<std::int64_t>> ConfigReader::integer(std::string_view key, std::int64_t min,
                                                          std::int64_t max) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::optional<std::int64_t>();
  const auto number = as_integer(*value);
  if (!number) return refuse(key, fmt::format("{} is not an integer", json_excerpt(*value)));
  if (*number < min || *number > max)
    return refuse(key, fmt::format("{} is out of range: {}..{}", *number, min, max));
  return number;
}

Result<std::optional<double>> ConfigReader::number(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number())
    return refuse(key, fmt::format("{} is not a number", json_excerpt(*value)));
  const double out = value->get<double>();
  if (!std::isfinite(out)) return refuse(key, "is not finite");
  return std::optional(out);
}

Result<std::optional<bool>> ConfigReader::boolean(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean())
    return refuse(key, fmt::format("{} is not true or false", json_excerpt(*value)));
  return std::optional(value->get<bool>());
}

Result<std::optional<std::string>> ConfigReader::text(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string())
    return refuse(key, fmt::format("{} is not a string", json_excerpt(*value)));
  return std::optional(value->get<std::string>());
}

Result<std::vector<std::string>> ConfigReader::texts_or_empty(std::string_view key) {
  const nlohmann::json* value = find(key);
  std::vector<std::string> out;
  if (value == nullptr) return out;
  if (!value->is_array())
    return refuse(key, fmt::format("{} is not a list of strings", json_excerpt(*value)));
  for (const nlohmann::json& item : *value) {
    if (!item.is_string())
      return refuse(key, fmt::format("{} is not a list of strings", json_excerpt(*value)));
    out.push_back(item.get<std::string>());
  }
  return out;
}

Result<std::vector<std::int64_t>> ConfigReader::ids(std::string_view key) {
  const nlohmann::json* value = find(key);
  std::vector<std::int64_t> out;
  if (value == nullptr) return out;
  const bool list = value->is_array();
  for (std::size_t i = 0; i < (list ? value->size() : 1); ++i) {
    const auto id = as_integer(list ? (*value)[i] : *value);
    if (!id || *id < 0 || *id > INT32_MAX)
      return refuse(key, fmt::format("{} is no token id or list of ids", json_excerpt(*value)));
    out.push_back(*id);
  }
  return out;
}

std::vector<std::string> ConfigReader::unread() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : object_.items()) {
    if (!read_.contains(key) && !says_nothing(value)) out.push_back(key);
  }
  return out;
}

}  // namespace cyb::hf
