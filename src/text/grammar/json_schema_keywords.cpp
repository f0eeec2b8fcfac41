// The keywords with a value of their own, one row each; what they mean together with others is
// decided later.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/grammar/json_schema.hpp"

namespace cyb::text {
namespace {

using Handler = Result<void> (*)(FlatSchema& out, const SchemaPart& value);
struct Keyword {
  std::string_view name;
  unsigned implies;  // types that the keyword is for
  Handler read;
};

Result<std::uint64_t> count_of(const SchemaPart& value) {
  const SchemaJson& json = value.schema;
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  const double number = json.is_number() ? json.get<double>() : -1.0;
  if (number >= 0 && number == std::floor(number))
    return number < 1.8e19 ? static_cast<std::uint64_t>(number) : kUnbounded - 1;
  return schema_error(value.path, "must be a whole number of at least 0");
}

Result<Decimal> decimal(const SchemaPart& value) {
  const SchemaJson& json = value.schema;
  if (!json.is_number()) return schema_error(value.path, "must be a number");
  const std::string text =
      json.is_number_float() ? fmt::format("{}", json.get<double>()) : json.dump();
  const std::optional<Decimal> out = decimal_of(text);
  if (!out) return schema_error(value.path, "the number is out of range");
  return *out;
}

Result<void> tighten(std::optional<NumberBound>& bound, const SchemaPart& value, bool exclusive,
                     bool low) {
  if (value.schema.is_boolean())
    return schema_error(value.path, "the form of draft 4 (true, false) is not supported");
  CYB_ASSIGN(const Decimal at, decimal(value));
  const int order = bound ? compare(at, bound->at) * (low ? 1 : -1) : 1;
  if (order > 0) bound = NumberBound{at, exclusive};
  if (order == 0) bound->exclusive = bound->exclusive || exclusive;
  return {};
}

Result<unsigned> type_named(const SchemaJson& name, const std::string& path) {
  const std::pair<std::string_view, unsigned> names[] = {
      {"null", kNull},       {"boolean", kBoolean}, {"string", kString}, {"number", kNumber},
      {"integer", kInteger}, {"array", kArray},     {"object", kObject}};
  for (const auto& [text, type] : names) {
    if (name.is_string() && name.get_ref<const std::string&>() == text) return type;
  }
  return schema_error(path, "none of null, boolean, string, number, integer, array, object");
}

/// A number may be an integer.
unsigned common_types(unsigned a, unsigned b) {
  unsigned out = a & b;
  if ((a & kNumber) != 0 && (b & kInteger) != 0) out |= kInteger;
  if ((b & kNumber) != 0 && (a & kInteger) != 0) out |= kInteger;
  return (out & kNumber) != 0 ? out & ~unsigned{kInteger} : out;
}

Result<void> read_type(FlatSchema& out, const SchemaPart& value) {
  unsigned types = 0;
  if (value.schema.is_array()) {
    for (const SchemaJson& name : value.schema) {
      CYB_ASSIGN(const unsigned one, type_named(name, value.path));
      types |= one;
    }
  } else {
    CYB_ASSIGN(types, type_named(value.schema, value.path));
  }
  out.types = common_types(out.types.value_or(kAnyType), types);
  return {};
}

Result<void> take_values(FlatSchema& out, std::vector<SchemaJson> values, const std::string& path) {
  if (out.values) {
    std::erase_if(values, [&](const SchemaJson& v) {
      return std::ranges::find(*out.values, v) == out.values->end();
    });
  }
  out.values = std::move(values);
  out.values_path = path;
  return {};
}

Result<void> read_enum(FlatSchema& out, const SchemaPart& value) {
  if (!value.schema.is_array() || value.schema.empty())
    return schema_error(value.path, "must be a list of at least one value");
  return take_values(out, {value.schema.begin(), value.schema.end()}, value.path);
}

Result<void> read_const(FlatSchema& out, const SchemaPart& value) {
  return take_values(out, {value.schema}, value.path);
}

Result<void> read_text(std::optional<std::string>& to, FlatSchema& out, const SchemaPart& value) {
  if (!value.schema.is_string()) return schema_error(value.path, "must be a text");
  const std::string& text = value.schema.get_ref<const std::string&>();
  if (to && *to != text)
    return schema_error(value.path,
                        "a second one beside another (by allOf or $ref) is not supported");
  to = text;
  out.text_path = value.path;
  return {};
}

Result<void> at_least(std::uint64_t& to, const SchemaPart& value) {
  CYB_ASSIGN(const std::uint64_t n, count_of(value));
  to = std::max(to, n);
  return {};
}

Result<void> at_most(std::uint64_t& to, const SchemaPart& value) {
  CYB_ASSIGN(const std::uint64_t n, count_of(value));
  to = std::min(to, n);
  return {};
}

Result<void> read_multiple(FlatSchema& out, const SchemaPart& value) {
  CYB_ASSIGN(const Decimal factor, decimal(value));
  const bool fits = !factor.negative && factor.fraction.empty() && factor.whole.size() <= 4;
  std::uint64_t n = 0;
  if (fits) {
    for (const char c : factor.whole) n = 10 * n + static_cast<std::uint64_t>(c - '0');
  }
  if (n < 1 || n > 1000)
    return schema_error(value.path, "is supported for whole numbers from 1 to 1000");
  if (out.multiple_of && *out.multiple_of != n)
    return schema_error(value.path, "a second one beside another is not supported");
  out.multiple_of = n;
  return {};
}

Result<void> read_required(FlatSchema& out, const SchemaPart& value) {
  if (!value.schema.is_array()) return schema_error(value.path, "must be a list of names");
  for (const SchemaJson& name : value.schema) {
    if (!name.is_string()) return schema_error(value.path, "must be a list of names");
    const std::string& text = name.get_ref<const std::string&>();
    if (!out.requires_name(text)) out.required.push_back(text);
  }
  return {};
}

Result<void> read_items(FlatSchema& out, const SchemaPart& value) {
  if (value.schema.is_array())
    return schema_error(value.path, "a list of schemas is not supported: use prefixItems");
  out.items.push_back(value);
  return {};
}

Result<void> read_prefix(FlatSchema& out, const SchemaPart& value) {
  if (!value.schema.is_array()) return schema_error(value.path, "must be a list of schemas");
  if (out.prefix_items)
    return schema_error(value.path, "a second one beside another is not supported");
  out.prefix_items.emplace();
  for (std::size_t i = 0; i < value.schema.size(); ++i)
    out.prefix_items->push_back({value.schema[i], schema_path(value.path, fmt::to_string(i))});
  return {};
}

Result<void> read_choice(FlatSchema& out, const SchemaPart& value, bool exactly_one) {
  if (!value.schema.is_array() || value.schema.empty())
    return schema_error(value.path, "must be a list of at least one schema");
  SchemaChoice choice{exactly_one, {}, value.path};
  for (std::size_t i = 0; i < value.schema.size(); ++i)
    choice.parts.push_back({value.schema[i], schema_path(value.path, fmt::to_string(i))});
  out.choices.push_back(std::move(choice));
  return {};
}

Result<void> must_be_false(const SchemaPart& value) {
  if (value.schema.is_boolean() && !value.schema.get<bool>()) return {};
  return schema_error(value.path, "is not supported, but for false");
}

constexpr unsigned kNumbers = kNumber | kInteger;

constexpr Keyword kKeywords[] = {
    {"type", 0, read_type},
    {"enum", 0, read_enum},
    {"const", 0, read_const},
    {"minimum", kNumbers,
     [](FlatSchema& o, const SchemaPart& v) { return tighten(o.range.low, v, false, true); }},
    {"exclusiveMinimum", kNumbers,
     [](FlatSchema& o, const SchemaPart& v) { return tighten(o.range.low, v, true, true); }},
    {"maximum", kNumbers,
     [](FlatSchema& o, const SchemaPart& v) { return tighten(o.range.high, v, false, false); }},
    {"exclusiveMaximum", kNumbers,
     [](FlatSchema& o, const SchemaPart& v) { return tighten(o.range.high, v, true, false); }},
    {"multipleOf", kNumbers, read_multiple},
    {"minLength", kString,
     [](FlatSchema& o, const SchemaPart& v) { return at_least(o.min_length, v); }},
    {"maxLength", kString,
     [](FlatSchema& o, const SchemaPart& v) { return at_most(o.max_length, v); }},
    {"pattern", kString,
     [](FlatSchema& o, const SchemaPart& v) { return read_text(o.pattern, o, v); }},
    {"format", kString,
     [](FlatSchema& o, const SchemaPart& v) { return read_text(o.format, o, v); }},
    {"items", kArray, read_items},
    {"prefixItems", kArray, read_prefix},
    {"minItems", kArray,
     [](FlatSchema& o, const SchemaPart& v) { return at_least(o.min_items, v); }},
    {"maxItems", kArray,
     [](FlatSchema& o, const SchemaPart& v) { return at_most(o.max_items, v); }},
    {"uniqueItems", kArray, [](FlatSchema&, const SchemaPart& v) { return must_be_false(v); }},
    {"required", kObject, read_required},
    {"propertyNames", kObject,
     [](FlatSchema& o, const SchemaPart& v) -> Result<void> {
       o.property_names.push_back(v);
       return {};
     }},
    {"minProperties", kObject,
     [](FlatSchema& o, const SchemaPart& v) {
       o.count_path = v.path;
       return at_least(o.min_properties, v);
     }},
    {"maxProperties", kObject,
     [](FlatSchema& o, const SchemaPart& v) {
       o.count_path = v.path;
       return at_most(o.max_properties, v);
     }},
    {"anyOf", 0, [](FlatSchema& o, const SchemaPart& v) { return read_choice(o, v, false); }},
    {"oneOf", 0, [](FlatSchema& o, const SchemaPart& v) { return read_choice(o, v, true); }},
};

}  // namespace

bool FlatSchema::requires_name(std::string_view name) const {
  return std::ranges::find(required, name) != required.end();
}

Result<void> read_schema_keyword(FlatSchema& out, const std::string& key, const SchemaPart& part,
                                 bool& known) {
  const auto found = std::ranges::find(kKeywords, std::string_view(key), &Keyword::name);
  known = found != std::end(kKeywords);
  if (!known) return {};
  out.implied_types |= found->implies;
  if (found->implies != 0) out.restricting.push_back(schema_path(part.path, key));
  return found->read(out, {part.schema[key], schema_path(part.path, key)});
}

std::string schema_path(const std::string& path, std::string_view step) {
  std::string out = path + "/";
  for (const char c : step) {
    if (c == '~') out += "~0";
    if (c == '/') out += "~1";
    if (c != '~' && c != '/') out += c;
  }
  return out;
}

}  // namespace cyb::text
