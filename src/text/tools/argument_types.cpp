// Schemas are walked with a list, a bounded number of steps: references may lead in circles.
#include "text/tools/argument_types.hpp"

#include <algorithm>
#include <array>

#include "text/grammar/json_schema.hpp"
#include "text/tools/json_scan.hpp"

namespace cyb {
namespace {

using text::SchemaJson;

constexpr std::size_t kMostSteps = 256;  // of one schema

unsigned type_named(const SchemaJson& name) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 7> kNames = {
      {{"null", text::kNull},
       {"boolean", text::kBoolean},
       {"string", text::kString},
       {"number", text::kNumber | text::kInteger},
       {"integer", text::kInteger},
       {"array", text::kArray},
       {"object", text::kObject}}};
  if (!name.is_string()) return 0;
  const auto found = std::ranges::find(kNames, name.get_ref<const std::string&>(),
                                       &std::pair<std::string_view, unsigned>::first);
  return found == kNames.end() ? 0 : found->second;
}

unsigned type_of(const SchemaJson& value) {
  if (value.is_null()) return text::kNull;
  if (value.is_boolean()) return text::kBoolean;
  if (value.is_string()) return text::kString;
  if (value.is_number()) return text::kNumber | text::kInteger;
  return value.is_array() ? text::kArray : text::kObject;
}

/// What the keywords of one schema object name themselves.
unsigned own_types(const SchemaJson& schema) {
  static constexpr std::array<std::pair<const char*, unsigned>, 10> kImplied = {
      {{"properties", text::kObject},
       {"additionalProperties", text::kObject},
       {"items", text::kArray},
       {"prefixItems", text::kArray},
       {"minLength", text::kString},
       {"maxLength", text::kString},
       {"pattern", text::kString},
       {"minimum", text::kNumber | text::kInteger},
       {"maximum", text::kNumber | text::kInteger},
       {"multipleOf", text::kNumber | text::kInteger}}};
  unsigned out = 0;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (!type->is_array()) out |= type_named(*type);
    if (type->is_array()) {
      for (const SchemaJson& one : *type) out |= type_named(one);
    }
  }
  if (out == 0) {
    if (const auto one = schema.find("const"); one != schema.end()) out |= type_of(*one);
    if (const auto all = schema.find("enum"); all != schema.end() && all->is_array()) {
      for (const SchemaJson& one : *all) out |= type_of(one);
    }
  }
  if (out == 0) {
    for (const auto& [keyword, types] : kImplied) {
      if (schema.contains(keyword)) out |= types;
    }
  }
  const auto nullable = schema.find("nullable");
  const bool also_null =
      nullable != schema.end() && nullable->is_boolean() && nullable->get<bool>();
  return also_null ? out | text::kNull : out;
}

/// Where `reference` ("#/$defs/a") leads, or null.
const SchemaJson* find_reference(const SchemaJson& document, const SchemaJson& reference) {
  if (!reference.is_string()) return nullptr;
  const std::string& path = reference.get_ref<const std::string&>();
  if (path == "#") return &document;
  if (!path.starts_with("#/") || path.find('%') != std::string::npos) return nullptr;
  const SchemaJson* at = &document;
  for (std::size_t from = 2; from <= path.size();) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    std::string step = path.substr(from, end - from);
    for (std::size_t i = 0; (i = step.find('~', i)) != std::string::npos; ++i) {
      step.replace(i, 2, step.compare(i, 2, "~1") == 0 ? "/" : "~");
    }
    if (!at->is_object()) return nullptr;
    const auto next = at->find(step);
    if (next == at->end()) return nullptr;
    at = &*next;
    from = end + 1;
  }
  return at;
}

/// Calls `visit` with `schema` and every schema object that says something of the same value.
template <typename Visit>
void walk(const SchemaJson& document, const SchemaJson& schema, Visit visit) {
  std::vector<const SchemaJson*> todo{&schema};
  for (std::size_t n = 0; n < kMostSteps && !todo.empty(); ++n) {
    const SchemaJson& at = *todo.back();
    todo.pop_back();
    if (!at.is_object()) continue;
    visit(at);
    if (const auto reference = at.find("$ref"); reference != at.end()) {
      if (const SchemaJson* to = find_reference(document, *reference)) todo.push_back(to);
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
      const auto list = at.find(keyword);
      if (list == at.end() || !list->is_array() || list->size() > kMostSteps) continue;
      for (const SchemaJson& one : *list) todo.push_back(&one);
    }
  }
}

std::string_view trimmed(std::string_view value) {
  while (!value.empty() && text::is_json_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && text::is_json_space(value.back())) value.remove_suffix(1);
  return value;
}

/// The type of a JSON text; 0 of other texts.
unsigned json_type(std::string_view value) {
  if (value.empty() || !SchemaJson::accept(value)) return 0;
  switch (value.front()) {
    case '{':
      return text::kObject;
    case '[':
      return text::kArray;
    case '"':
      return text::kString;
    case 't':
    case 'f':
      return text::kBoolean;
    case 'n':
      return text::kNull;
    default:
      return value.find_first_of(".eE") == std::string_view::npos ? text::kInteger : text::kNumber;
  }
}

/// A literal of Python as JSON; empty where it is none.
std::string python_json(std::string_view value) {
  text::KeywordScan scan;
  std::string json;
  for (const char c : "(x=" + std::string(value) + ")") {
    const text::ScanStep step = scan.push(c, json);
    if (step == text::ScanStep::kFailed) return {};
    if (step == text::ScanStep::kDone) break;
  }
  static constexpr std::string_view kBefore = "{\"x\": ";
  if (!json.starts_with(kBefore) || !json.ends_with('}')) return {};
  json = json.substr(kBefore.size(), json.size() - kBefore.size() - 1);
  return json_type(json) == 0 ? std::string() : json;
}

std::string lower_case(std::string_view value) {
  std::string out(value.substr(0, 6));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return out;
}

}  // namespace

unsigned ArgumentTypes::of(std::string_view argument) const noexcept {
  const auto found = std::ranges::find(types, argument, &std::pair<std::string, unsigned>::first);
  return found == types.end() ? 0 : found->second;
}

ArgumentTypes read_argument_types(std::string_view function, std::string_view schema) {
  ArgumentTypes out{std::string(function), {}};
  auto document = SchemaJson::parse(schema, nullptr, false);
  if (document.is_discarded()) return out;
  std::vector<std::pair<std::string, const SchemaJson*>> properties;
  walk(document, document, [&](const SchemaJson& at) {
    const auto own = at.find("properties");
    if (own == at.end() || !own->is_object()) return;
    for (const auto& [name, property] : own->items()) properties.emplace_back(name, &property);
  });
  for (const auto& [name, property] : properties) {
    unsigned types = 0;
    walk(document, *property, [&](const SchemaJson& at) { types |= own_types(at); });
    out.types.emplace_back(name, types);
  }
  return out;
}

bool is_plain_text(unsigned types, const ToolTags& tags) noexcept {
  return types == text::kString || (types == 0 && !tags.untyped_json);
}

std::string typed_json(std::string_view value, unsigned types) {
  if (types == 0) types = text::kAnyType | text::kInteger;
  const std::string_view shown = trimmed(value);
  const unsigned type = json_type(shown);
  if ((type & types) != 0) return std::string(shown);
  const std::string word = lower_case(shown);
  const bool is_null = word == "null" || word == "none";
  if ((types & text::kBoolean) != 0 && (word == "true" || word == "false")) return word;
  if (is_null && ((types & text::kNull) != 0 || (types & text::kString) == 0)) return "null";
  if ((types & (text::kArray | text::kObject)) != 0) {
    if (type != 0) return std::string(shown);
    if (std::string literal = python_json(shown); !literal.empty()) return literal;
  }
  std::string out = "\"";
  for (const char c : value) text::append_json_char(out, c);
  return out + "\"";
}

}  // namespace cyb
