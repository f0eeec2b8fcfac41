// Objects and arrays. Members come in the order of their declaration; a name that is not declared
// never equals one that is, however it is spelled.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/utf8.hpp"
#include "text/grammar/grammar.hpp"
#include "text/grammar/json_schema_compiler.hpp"
#include "text/grammar/regex_reader.hpp"

namespace cyb::text {

/// Items behind those of prefixItems, each with its comma; without prefixItems all, at least one.
Result<ExprId> JsonSchemaCompiler::items_tail(const FlatSchema& schema, const SchemaPart& item) {
  const std::uint64_t n = schema.prefix_items ? schema.prefix_items->size() : 0;
  CYB_ASSIGN(const ExprId value, value_of(item));
  const std::uint64_t min = schema.min_items > n ? schema.min_items - n : 0;
  const std::uint64_t max = schema.max_items == kUnbounded ? kUnbounded : schema.max_items - n;
  const ExprId comma = rules_.sequence({rules_.literal(","), rules_.rule(space_)});
  if (n > 0) return rules_.repeat(rules_.sequence({comma, value}), min, max);
  if (max == 0) return rules_.never();
  const ExprId more = rules_.repeat(rules_.sequence({comma, value}), min > 0 ? min - 1 : 0,
                                    max == kUnbounded ? kUnbounded : max - 1);
  return rules_.sequence({value, more});
}

Result<ExprId> JsonSchemaCompiler::array(const FlatSchema& schema) {
  if (schema.min_items > schema.max_items) return rules_.never();
  const SchemaPart item = together(schema.items, schema_path(schema.path, "items"));
  const std::vector<SchemaPart> none;
  const std::vector<SchemaPart>& prefix = schema.prefix_items ? *schema.prefix_items : none;
  const std::uint64_t n = prefix.size();
  ExprId rest = n > 0 ? rules_.empty() : rules_.never();
  if (schema.max_items > n) {
    CYB_ASSIGN(rest, items_tail(schema, item));
  }
  const ExprId comma = rules_.sequence({rules_.literal(","), rules_.rule(space_)});
  for (std::uint64_t i = n; i-- > 0;) {
    if (i >= schema.max_items) continue;
    CYB_ASSIGN(const ExprId value, value_of(prefix[i]));
    rest = rules_.sequence({i > 0 ? comma : rules_.empty(), value, rest});
    if (i > 0 && i >= schema.min_items) rest = rules_.optional(rest);
  }
  // An empty list has no white space.
  if (n > 0 && schema.max_items == 0) rest = rules_.never();
  const ExprId space = rules_.rule(space_);
  ExprId filled = rules_.sequence({space, rest, space});
  if (schema.min_items == 0) filled = rules_.optional(filled);
  return rules_.sequence({rules_.literal("["), filled, rules_.literal("]")});
}

/// Whether the pattern of patternProperties fits a name.
Result<bool> JsonSchemaCompiler::pattern_fits(const std::string& pattern, const SchemaPart& part,
                                              const std::string& name) {
  CYB_ASSIGN(const SourceText source, SourceText::open(pattern));
  GrammarRules scratch;
  scratch.root = scratch.declare(part.path);
  auto body = read_regex(scratch, source, {.search = true}, budget_);
  if (!body) return schema_error(part.path, body.error());
  scratch.define(scratch.root, *body);
  CYB_ASSIGN(const auto grammar, Grammar::compile(scratch, budget_));
  return grammar->matches(name);
}

/// What all parts of the schema say of the member `name`.
Result<SchemaPart> JsonSchemaCompiler::member_schema(const FlatSchema& schema,
                                                     const std::string& name) {
  std::vector<SchemaPart> parts;
  for (const MemberRules& rules : schema.members) {
    const auto own = std::ranges::find(rules.properties, name,
                                       [](const auto& p) -> const auto& { return p.first; });
    bool declared = own != rules.properties.end();
    if (declared) parts.push_back(own->second);
    for (const auto& [pattern, part] : rules.patterns) {
      CYB_ASSIGN(const bool fits, pattern_fits(pattern, part, name));
      if (!fits) continue;
      declared = true;
      parts.push_back(part);
    }
    if (!declared && rules.additional) parts.push_back(*rules.additional);
  }
  return together(std::move(parts), schema_path(schema_path(schema.path, "properties"), name));
}

Result<std::vector<JsonSchemaCompiler::Member>> JsonSchemaCompiler::members_of(
    const FlatSchema& schema) {
  std::vector<Member> out;
  std::map<std::string, bool> seen;
  const auto add = [&](const std::string& name) -> Result<void> {
    if (!seen.emplace(name, true).second) return {};
    CYB_ASSIGN(const SchemaPart part, member_schema(schema, name));
    CYB_ASSIGN(const ExprId value, value_of(part));
    const bool required = schema.requires_name(name);
    const ExprId key = rules_.literal("\"" + json_spelling(name) + "\":");
    const ExprId entry = rules_.sequence({key, rules_.optional(rules_.literal(" ")), value});
    if (value == rules_.never() && required)
      return schema_error(part.path, "the property is required, and no value of it fits");
    RuleId rule = rules_.declare(part.path);
    rules_.define(rule, entry);
    // A name that may not occur stays in the list: other names must differ from it.
    out.push_back({name, value == rules_.never() ? value : rules_.rule(rule), required});
    return {};
  };
  for (const MemberRules& rules : schema.members) {
    for (const auto& [name, part] : rules.properties) CYB_TRY(add(name));
  }
  for (const std::string& name : schema.required) CYB_TRY(add(name));
  return out;
}

/// Keys that equal no member's name: a tree of their characters, each with one spelling only.
ExprId JsonSchemaCompiler::key_unlike(const std::vector<Member>& members) {
  struct Branch {
    bool name = false;
    std::map<char32_t, std::size_t> next{};
  };
  std::vector<Branch> tree(1);
  for (const Member& member : members) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < member.name.size();) {
      const Utf8Char c = utf8_next(member.name, i);
      i += c.size;
      const auto [found, added] = tree[at].next.try_emplace(c.code_point, tree.size());
      at = found->second;
      if (added) tree.emplace_back();
    }
    tree[at].name = true;
  }
  const RuleId rest = rules_.declare("another name");
  rules_.define(rest,
                rules_.sequence({rules_.repeat(json_chars(rules_, CharSet::all()), 0, kUnbounded),
                                 rules_.literal("\"")}));
  std::vector<RuleId> branch_rules;
  for (std::size_t i = 0; i < tree.size(); ++i) branch_rules.push_back(rules_.declare("a name"));
  for (std::size_t i = 0; i < tree.size(); ++i) {
    CharSet others = CharSet::all();
    std::vector<ExprId> parts;
    CharSet taken;
    for (const auto& [c, next] : tree[i].next) {
      taken.add(c, c);
      parts.push_back(
          rules_.sequence({json_chars(rules_, CharSet::of(c)), rules_.rule(branch_rules[next])}));
    }
    parts.push_back(rules_.sequence({json_chars(rules_, others.minus(taken)), rules_.rule(rest)}));
    if (!tree[i].name) parts.push_back(rules_.literal("\""));
    rules_.define(branch_rules[i], rules_.choice(parts));
  }
  return rules_.sequence({rules_.literal("\""), rules_.rule(branch_rules[0])});
}

Result<ExprId> JsonSchemaCompiler::other_key(const FlatSchema& schema,
                                             const std::vector<Member>& members) {
  if (schema.property_names.empty())
    return members.empty() ? rules_.rule(string_) : key_unlike(members);
  if (!members.empty())
    return schema_error(schema.property_names[0].path,
                        "is not supported together with properties or required");
  const std::string path = schema.property_names[0].path;
  std::vector<SchemaPart> parts = schema.property_names;
  SchemaJson text;
  text["type"] = "string";
  parts.push_back({std::move(text), path});
  return value_of(together(std::move(parts), path));
}

/// Members by patternProperties, where nothing else may be there.
Result<ExprId> JsonSchemaCompiler::pattern_entry(const FlatSchema& schema,
                                                 const MemberRules& rules) {
  const auto& [pattern, part] = rules.patterns[0];
  const bool closed = !rules.additional || rules.additional->schema == SchemaJson(false);
  if (rules.patterns.size() > 1 || schema.members.size() > 1 || !closed)
    return schema_error(part.path,
                        "is supported where it is the only pattern, and nothing but false stands "
                        "as additionalProperties");
  if (!schema.property_names.empty())
    return schema_error(schema.property_names[0].path,
                        "is not supported together with patternProperties");
  CYB_ASSIGN(const SourceText source, SourceText::open(pattern));
  auto key = read_regex(rules_, source, {.search = true, .json = true}, budget_);
  if (!key) return schema_error(part.path, key.error());
  CYB_ASSIGN(const ExprId value, value_of(part));
  return rules_.sequence({rules_.literal("\""), *key, rules_.literal("\":"),
                          rules_.optional(rules_.literal(" ")), value});
}

/// A member that is not declared; never where there may be none.
Result<ExprId> JsonSchemaCompiler::other_entry(const FlatSchema& schema,
                                               const std::vector<Member>& members) {
  std::vector<SchemaPart> parts;
  bool open = schema.members.empty() && members.empty();
  for (const MemberRules& rules : schema.members) {
    if (!rules.patterns.empty()) {
      CYB_ASSIGN(const ExprId by_pattern, pattern_entry(schema, rules));
      // A declared name that fits the pattern is written in its own place only.
      for (const Member& member : members) {
        const auto& [pattern, part] = rules.patterns[0];
        CYB_ASSIGN(const bool fits, pattern_fits(pattern, part, member.name));
        if (fits)
          return schema_error(
              part.path,
              fmt::format("the pattern also fits the property \"{}\": not supported", member.name));
      }
      return by_pattern;
    }
    if (rules.additional) parts.push_back(*rules.additional);
    open = open || rules.additional.has_value();
  }
  // Declared members and no word about others: none are written.
  if (!open) return rules_.never();
  const SchemaPart part =
      together(std::move(parts), schema_path(schema.path, "additionalProperties"));
  CYB_ASSIGN(const ExprId value, value_of(part));
  if (value == rules_.never()) return value;
  CYB_ASSIGN(const ExprId key, other_key(schema, members));
  return rules_.sequence({key, rules_.literal(":"), rules_.optional(rules_.literal(" ")), value});
}

/// Members in their order, then others. Two chains: with nothing before, and with a comma.
ExprId JsonSchemaCompiler::entries(const std::vector<Member>& members, ExprId other,
                                   std::uint64_t most_others, bool one_needed) {
  const ExprId comma = rules_.sequence({rules_.literal(","), rules_.rule(space_)});
  const ExprId next_other = rules_.sequence({comma, other});
  ExprId after = rules_.repeat(next_other, 0, most_others);
  ExprId first = rules_.sequence(
      {other, rules_.repeat(
                  next_other, 0,
                  most_others == kUnbounded || most_others == 0 ? most_others : most_others - 1)});
  if (most_others == 0) first = rules_.never();
  // `first` always writes something; whether nothing may be written is said at the end.
  bool may_be_none = true;
  for (std::size_t i = members.size(); i-- > 0;) {
    const Member& member = members[i];
    const RuleId after_rule = rules_.declare("the members after one");
    rules_.define(after_rule, after);
    const RuleId first_rule = rules_.declare("the members");
    rules_.define(first_rule, first);
    const ExprId begins = rules_.sequence({member.entry, rules_.rule(after_rule)});
    const ExprId goes_on = rules_.sequence({comma, member.entry, rules_.rule(after_rule)});
    after = member.required ? goes_on : rules_.choice({goes_on, rules_.rule(after_rule)});
    first = member.required ? begins : rules_.choice({begins, rules_.rule(first_rule)});
    may_be_none = may_be_none && !member.required;
  }
  const ExprId space = rules_.rule(space_);
  const ExprId filled = rules_.sequence({space, first, space});
  return may_be_none && !one_needed ? rules_.optional(filled) : filled;
}

Result<void> JsonSchemaCompiler::check_counts(const FlatSchema& schema,
                                              const std::vector<Member>& members, bool others) {
  const std::uint64_t n_required = schema.required.size();
  const bool enough = schema.min_properties <= std::max<std::uint64_t>(n_required, 1);
  const bool few = schema.max_properties >= members.size() || (!others && members.empty());
  if (enough && few) return {};
  return schema_error(schema.count_path,
                      "is supported only where the members' own rules ensure it (minProperties up "
                      "to 1 or the number of required ones, maxProperties from the number of "
                      "declared ones)");
}

Result<ExprId> JsonSchemaCompiler::object(const FlatSchema& schema) {
  if (schema.members.empty() && schema.required.empty() && schema.property_names.empty() &&
      schema.min_properties == 0 && schema.max_properties == kUnbounded)
    return rules_.rule(any_object_);
  CYB_ASSIGN(const std::vector<Member> members, members_of(schema));
  CYB_ASSIGN(const ExprId other, other_entry(schema, members));
  CYB_TRY(check_counts(schema, members, other != rules_.never()));
  if (!schema.property_names.empty() && (!members.empty() || other == rules_.never()))
    return schema_error(schema.property_names[0].path,
                        "is not supported together with properties or required");
  const std::uint64_t most =
      schema.max_properties == kUnbounded ? kUnbounded : schema.max_properties - members.size();
  const ExprId body = entries(members, other, most, schema.min_properties > 0);
  return rules_.sequence({rules_.literal("{"), body, rules_.literal("}")});
}

}  // namespace cyb::text
