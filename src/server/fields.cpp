// The tables are data; this is the one reader of them.
#include "server/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "text/template/chat_json.hpp"

namespace cyb::server {
namespace {

using Kind = ChatValue::Kind;

ApiError wrong_type(const Field& field) {
  return {400, fmt::format("'{}' must be {}.", field.name, type_text(field.type)), "invalid_type",
          std::string(field.name)};
}

double number_of(const ChatValue& value) noexcept {
  return value.kind == Kind::kInt ? static_cast<double>(value.integer) : value.number;
}

bool all_texts(const ChatValue& value) {
  return std::ranges::all_of(value.items,
                             [](const ChatValue& v) { return v.kind == Kind::kString; });
}

bool has_type(const ChatValue& value, FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return value.kind == Kind::kBool;
    case FieldType::kInteger:
      return value.kind == Kind::kInt ||
             (value.kind == Kind::kFloat &&
              value.number == static_cast<double>(static_cast<std::int64_t>(
                                  std::clamp(value.number, -1e15, 1e15))));
    case FieldType::kNumber:
      return value.kind == Kind::kInt || value.kind == Kind::kFloat;
    case FieldType::kString:
      return value.kind == Kind::kString;
    case FieldType::kStrings:
      return value.kind == Kind::kString || (value.kind == Kind::kList && all_texts(value));
    case FieldType::kList:
      return value.kind == Kind::kList;
    case FieldType::kObject:
      return value.kind == Kind::kObject;
    case FieldType::kAny:
      return true;
  }
  return false;
}

/// What the range is about: the number itself, bytes, items or members.
double measure(const ChatValue& value) noexcept {
  switch (value.kind) {
    case Kind::kString:
      return static_cast<double>(value.text.size());
    case Kind::kList:
      return static_cast<double>(value.items.size());
    case Kind::kObject:
      return static_cast<double>(value.members.size());
    default:
      return number_of(value);
  }
}

std::string_view unit(FieldType type) noexcept {
  if (type == FieldType::kString) return " bytes";
  if (type == FieldType::kList || type == FieldType::kStrings) return " items";
  return type == FieldType::kObject ? " members" : "";
}

/// JSON of the small values that kOnly fields take; "?" of anything else.
std::string small_json(const ChatValue& value) {
  switch (value.kind) {
    case Kind::kBool:
      return value.boolean ? "true" : "false";
    case Kind::kInt:
      return std::to_string(value.integer);
    case Kind::kString:
      return json_quote(value.text);
    case Kind::kList:
      if (value.items.empty()) return "[]";
      return value.items.size() == 1 && value.items[0].kind == Kind::kString
                 ? "[" + json_quote(value.items[0].text) + "]"
                 : "?";
    case Kind::kObject:
      if (value.members.empty()) return "{}";
      return value.members.size() == 1 && value.members[0].second.kind == Kind::kString
                 ? fmt::format("{{{}:{}}}", json_quote(value.members[0].first),
                               json_quote(value.members[0].second.text))
                 : "?";
    default:
      return "?";
  }
}

bool is_listed(std::string_view list, std::string_view value) {
  while (true) {
    const std::size_t at = list.find('|');
    if (list.substr(0, at) == value) return true;
    if (at == std::string_view::npos) return false;
    list.remove_prefix(at + 1);
  }
}

ApiResult<void> check_field(const Field& field, const ChatValue& value) {
  if (field.state == FieldState::kRefused) return refuse(unsupported(field.name, field.note));
  if (field.state == FieldState::kOnly) {
    if (is_listed(field.fallback, small_json(value))) return {};
    return refuse(unsupported(field.name, fmt::format("only {}", field.fallback)));
  }
  if (!has_type(value, field.type)) return refuse(wrong_type(field));
  if (field.members != nullptr) {
    const auto checked = check_fields(value, field.members(), field.name);
    if (!checked) return refuse(checked.error());
  }
  if (field.type == FieldType::kBool || field.type == FieldType::kAny) return {};
  const double size = measure(value);
  const bool one_text = field.type == FieldType::kStrings && value.kind == Kind::kString;
  if (one_text || field.members != nullptr || (size >= field.min && size <= field.max)) return {};
  return refuse(bad_value(
      field.name, fmt::format("must be {} to {}{}", field.min, field.max, unit(field.type))));
}

ApiResult<void> check_all(const ChatValue& body, std::span<const Field> table) {
  for (const auto& [key, value] : body.members) {
    const auto field = std::ranges::find(table, std::string_view(key), &Field::name);
    if (field == table.end()) {
      const std::string name = key.substr(0, 64);
      return refuse({400, fmt::format("Unknown field '{}'.", name), "unknown_parameter", name});
    }
    if (value.kind != Kind::kNull) CYB_API_TRY(check_field(*field, value));
  }
  for (const Field& field : table) {
    if (field.required && Fields(body).find(field.name) == nullptr) {
      return refuse(bad_value(field.name, "is missing"));
    }
  }
  return {};
}

}  // namespace

std::string_view type_text(FieldType type) noexcept {
  static constexpr std::string_view kTexts[] = {
      "true or false", "an integer", "a number",  "a string", "a string or a list of strings",
      "a list",        "an object",  "any value",
  };
  return kTexts[static_cast<std::size_t>(type)];
}

const ChatValue* Fields::find(std::string_view name) const noexcept {
  for (const auto& [key, value] : body_->members) {
    if (key == name) return value.kind == Kind::kNull ? nullptr : &value;
  }
  return nullptr;
}

std::optional<bool> Fields::flag(std::string_view name) const noexcept {
  const ChatValue* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->boolean);
}

std::optional<std::int64_t> Fields::integer(std::string_view name) const noexcept {
  const ChatValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  return value->kind == Kind::kInt ? value->integer : static_cast<std::int64_t>(value->number);
}

std::optional<double> Fields::number(std::string_view name) const noexcept {
  const ChatValue* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(number_of(*value));
}

std::optional<std::string_view> Fields::text(std::string_view name) const noexcept {
  const ChatValue* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(std::string_view(value->text));
}

ApiResult<ChatValue> parse_body(std::string_view body) {
  if (body.empty()) return refuse({400, "the body is empty.", "invalid_json"});
  if (const std::size_t bad = utf8_find_invalid(body); bad != std::string_view::npos)
    return refuse({400, fmt::format("the body is not UTF-8 at byte {}.", bad), "invalid_json"});
  auto parsed = parse_chat_json(body, "the body");
  if (!parsed) {
    // What the parser last read is the client's own text: it stays out of the answer.
    std::string text = parsed.error().message();
    text.resize(std::min({text.size(), text.find("; last read"), text.find(" - ")}));
    return refuse({400, text + ".", "invalid_json"});
  }
  if (parsed->kind != Kind::kObject) {
    return refuse({400, "the body must be a JSON object.", "invalid_json"});
  }
  return *std::move(parsed);
}

ApiResult<Fields> check_fields(const ChatValue& body, std::span<const Field> table,
                               std::string_view where) {
  auto checked = check_all(body, table);
  if (checked) return Fields(body);
  ApiError& error = checked.error();
  return refuse(where.empty()
                    ? error
                    : renamed(error, error.param, fmt::format("{}.{}", where, error.param)));
}

}  // namespace cyb::server
