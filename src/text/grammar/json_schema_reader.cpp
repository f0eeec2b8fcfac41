// Flattening: a schema, what it refers to and its allOf become one FlatSchema, with a list of what
// is still to be taken in instead of recursion.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/grammar/json_schema.hpp"

namespace cyb::text {
namespace {

/// Keywords that say nothing about which values fit.
constexpr std::array<std::string_view, 18> kAnnotations = {
    "title",         "description",  "default",         "examples",      "example",
    "deprecated",    "readOnly",     "writeOnly",       "$comment",      "$schema",
    "$defs",         "definitions",  "contentEncoding", "contentSchema", "contentMediaType",
    "discriminator", "externalDocs", "$vocabulary"};

/// Keywords that are read further below.
constexpr std::array<std::string_view, 6> kOwn = {
    "$ref", "allOf", "nullable", "properties", "patternProperties", "additionalProperties"};

template <std::size_t N>
bool is_in(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A step of a JSON pointer in a URI fragment as it is meant.
std::string unescape(std::string_view step) {
  std::string out;
  const auto hex = [&](std::size_t i) {
    constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
    const std::size_t at = i < step.size() ? kDigits.find(step[i]) : std::string_view::npos;
    return at == std::string_view::npos ? -1 : static_cast<int>(at < 16 ? at : at - 6);
  };
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '%' && hex(i + 1) >= 0 && hex(i + 2) >= 0) {
      out += static_cast<char>(16 * hex(i + 1) + hex(i + 2));
      i += 2;
    } else if (step[i] == '~' && i + 1 < step.size() &&
               (step[i + 1] == '0' || step[i + 1] == '1')) {
      out += step[++i] == '0' ? '~' : '/';
    } else {
      out += step[i];
    }
  }
  return out;
}

/// The value at one step, or null.
const SchemaJson* step_into(const SchemaJson& json, const std::string& step) {
  if (json.is_object()) {
    const auto found = json.find(step);
    return found == json.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  for (const char c : step) {
    if (c < '0' || c > '9' || index > json.size()) return nullptr;
    index = 10 * index + static_cast<std::size_t>(c - '0');
  }
  return json.is_array() && !step.empty() && index < json.size() ? &json[index] : nullptr;
}

bool only_refers(const SchemaJson& schema) {
  if (!schema.is_object() || !schema.contains("$ref")) return false;
  for (const auto& [key, value] : schema.items()) {
    if (key != "$ref" && !is_in(kAnnotations, key)) return false;
  }
  return true;
}

}  // namespace

bool is_schema_annotation(std::string_view keyword) {
  return is_in(kAnnotations, keyword);
}

unsigned FlatSchema::possible_types() const {
  if (never) return 0;
  unsigned out = kAnyType;
  if (implied_types != 0 && choices.empty()) out = implied_types;
  if (types) out = *types;
  if (!values) return out;
  unsigned of_values = 0;
  for (const SchemaJson& v : *values) {
    if (v.is_null()) of_values |= kNull;
    if (v.is_boolean()) of_values |= kBoolean;
    if (v.is_string()) of_values |= kString;
    if (v.is_number()) of_values |= kNumber | kInteger;
    if (v.is_array()) of_values |= kArray;
    if (v.is_object()) of_values |= kObject;
  }
  if ((out & kNumber) != 0) out |= kInteger;
  return out & of_values;
}

SchemaPart together(std::vector<SchemaPart> parts, const std::string& path) {
  if (parts.empty()) return {true, path};
  if (parts.size() == 1) return std::move(parts[0]);
  SchemaJson all = SchemaJson::array();
  for (SchemaPart& part : parts)
    all.push_back(SchemaJson::array({part.path, std::move(part.schema)}));
  SchemaJson out;
  out[std::string(kTogether)] = std::move(all);
  return {std::move(out), path};
}

Result<SchemaPart> SchemaReader::target(const SchemaPart& part) {
  const std::string path = schema_path(part.path, "$ref");
  const SchemaJson& ref = part.schema["$ref"];
  if (!ref.is_string()) return schema_error(path, "must be a text");
  std::string_view rest = ref.get_ref<const std::string&>();
  if (!rest.starts_with('#') || (rest.size() > 1 && rest[1] != '/')) {
    return schema_error(path, fmt::format("\"{}\": only references within the schema (#/...) are "
                                          "supported",
                                          rest));
  }
  rest.remove_prefix(1);
  const SchemaJson* at = &document_;
  std::string place = "#";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/', 1), rest.size());
    const std::string step = unescape(rest.substr(1, end - 1));
    at = step_into(*at, step);
    if (at == nullptr)
      return schema_error(path,
                          fmt::format("\"{}\" is not there", ref.get_ref<const std::string&>()));
    place = schema_path(place, step);
    rest.remove_prefix(end);
  }
  return SchemaPart{*at, std::move(place)};
}

Result<SchemaPart> SchemaReader::follow(SchemaPart part) {
  const std::string start = part.path;
  for (std::size_t n = 0; only_refers(part.schema); ++n) {
    if (n == kMaxGrammarDepth)
      return schema_error(schema_path(start, "$ref"), "a cycle of $ref, or a chain of too many");
    CYB_ASSIGN(part, target(part));
  }
  return part;
}

Result<void> SchemaReader::add_members(FlatSchema& out, const SchemaPart& part) {
  MemberRules members;
  bool given = false;
  for (const char* key : {"properties", "patternProperties"}) {
    const auto found = part.schema.find(key);
    if (found == part.schema.end()) continue;
    given = true;
    const std::string path = schema_path(part.path, key);
    if (!found->is_object()) return schema_error(path, "must be an object of schemas");
    auto& to = key[1] == 'r' ? members.properties : members.patterns;
    for (const auto& [name, schema] : found->items())
      to.emplace_back(name, SchemaPart{schema, schema_path(path, name)});
    out.restricting.push_back(path);
  }
  if (const auto found = part.schema.find("additionalProperties"); found != part.schema.end()) {
    given = true;
    members.additional = SchemaPart{*found, schema_path(part.path, "additionalProperties")};
    out.restricting.push_back(members.additional->path);
  }
  if (!given) return {};
  out.implied_types |= kObject;
  out.members.push_back(std::move(members));
  return {};
}

/// One schema object; what it is made of besides goes to `todo`.
Result<void> SchemaReader::add(FlatSchema& out, const SchemaPart& part,
                               std::vector<SchemaPart>& todo) {
  const SchemaJson& schema = part.schema;
  FlatSchema before;
  before.types = out.types;
  for (const auto& [key, value] : schema.items()) {
    CYB_TRY(budget_.step(part.path));
    bool known = false;
    CYB_TRY(read_schema_keyword(out, key, part, known));
    const bool fine = known || is_in(kAnnotations, key) || is_in(kOwn, key) || key == kTogether ||
                      key.starts_with("x-") || (key == "$id" && part.path == "#");
    if (!fine)
      return schema_error(schema_path(part.path, key), fmt::format("{} is not supported", key));
  }
  out.sources.push_back(part);
  CYB_TRY(add_members(out, part));
  const auto nullable = schema.find("nullable");
  if (nullable != schema.end() && !nullable->is_boolean())
    return schema_error(schema_path(part.path, "nullable"), "must be true or false");
  if (nullable != schema.end() && nullable->get<bool>() && out.types)
    *out.types |= before.types.value_or(kAnyType) & kNull;
  if (schema.contains("$ref")) {
    CYB_ASSIGN(SchemaPart referred, target(part));
    todo.push_back(std::move(referred));
  }
  if (const auto parts = schema.find(std::string(kTogether)); parts != schema.end()) {
    for (std::size_t i = parts->size(); i-- > 0;) {
      const SchemaJson& one = (*parts)[i];
      if (!one.is_array() || one.size() != 2 || !one[0].is_string())
        return schema_error(part.path, "the name of a keyword is not supported");
      todo.push_back({one[1], one[0].get<std::string>()});
    }
  }
  const auto all = schema.find("allOf");
  if (all == schema.end()) return {};
  const std::string path = schema_path(part.path, "allOf");
  if (!all->is_array()) return schema_error(path, "must be a list of schemas");
  for (std::size_t i = all->size(); i-- > 0;)
    todo.push_back({(*all)[i], schema_path(path, fmt::to_string(i))});
  return {};
}

Result<FlatSchema> SchemaReader::flatten(const SchemaPart& part) {
  FlatSchema out;
  out.path = part.path;
  std::vector<SchemaPart> todo{part};
  // A schema whose own parts lead back to it says nothing: a cycle.
  for (std::size_t n = 0; !todo.empty(); ++n) {
    const SchemaPart next = std::move(todo.back());
    todo.pop_back();
    CYB_TRY(budget_.check(part.path));
    if (n == 4 * kMaxGrammarDepth)
      return schema_error(part.path, "a cycle of $ref and allOf, or too many of them");
    if (next.schema.is_boolean()) {
      out.never = out.never || !next.schema.get<bool>();
    } else if (next.schema.is_object()) {
      CYB_TRY(add(out, next, todo));
    } else {
      return schema_error(next.path, "a schema is an object, true or false");
    }
  }
  return out;
}

Result<bool> SchemaReader::members_disjoint(const FlatSchema& a, const FlatSchema& b) {
  const auto find = [](const FlatSchema& in, const std::string& name) -> const SchemaPart* {
    for (const MemberRules& m : in.members) {
      for (const auto& [known, part] : m.properties) {
        if (known == name) return &part;
      }
    }
    return nullptr;
  };
  const auto refuses = [](const MemberRules& m, const std::string& name) {
    const bool closed = m.additional && m.additional->schema.is_boolean() &&
                        !m.additional->schema.get<bool>() && m.patterns.empty();
    return closed && std::ranges::find(m.properties, name, [](const auto& p) -> const auto& {
                       return p.first;
                     }) == m.properties.end();
  };
  for (const FlatSchema* one : {&a, &b}) {
    const FlatSchema& other = one == &a ? b : a;
    for (const std::string& name : one->required) {
      if (std::ranges::any_of(other.members,
                              [&](const MemberRules& m) { return refuses(m, name); }))
        return true;
    }
  }
  for (const std::string& name : a.required) {
    const SchemaPart *in_a = find(a, name), *in_b = find(b, name);
    if (!b.requires_name(name) || in_a == nullptr || in_b == nullptr) continue;
    CYB_ASSIGN(const FlatSchema x, flatten(*in_a));
    CYB_ASSIGN(const FlatSchema y, flatten(*in_b));
    if ((x.possible_types() & y.possible_types()) == 0) return true;
    if (!x.values || !y.values) continue;
    if (std::ranges::none_of(*x.values, [&](const SchemaJson& v) {
          return std::ranges::find(*y.values, v) != y.values->end();
        }))
      return true;
  }
  return false;
}

Result<bool> SchemaReader::disjoint(const SchemaPart& a, const SchemaPart& b) {
  CYB_ASSIGN(const FlatSchema x, flatten(a));
  CYB_ASSIGN(const FlatSchema y, flatten(b));
  // An integer is a number; types that are only implied by keywords do not keep others out.
  const auto types = [](const FlatSchema& s) {
    unsigned out = s.types || s.values ? s.possible_types() : unsigned{kAnyType};
    return (out & kNumber) != 0 ? out | kInteger : out;
  };
  const unsigned common = types(x) & types(y);
  if (common == 0 || x.never || y.never) return true;
  if (x.values && y.values) {
    return std::ranges::none_of(*x.values, [&](const SchemaJson& v) {
      return std::ranges::find(*y.values, v) != y.values->end();
    });
  }
  if ((common & ~unsigned{kNumber | kInteger}) == 0) {
    const auto below = [](const NumberRange& low, const NumberRange& high) {
      if (!low.high || !high.low) return false;
      const int order = compare(low.high->at, high.low->at);
      return order < 0 || (order == 0 && (low.high->exclusive || high.low->exclusive));
    };
    return below(x.range, y.range) || below(y.range, x.range);
  }
  return common == kObject ? members_disjoint(x, y) : Result<bool>(false);
}

}  // namespace cyb::text
