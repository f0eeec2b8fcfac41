// One flat schema at a time: its alternatives, its values, or its types.
#include "text/grammar/json_schema_compiler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "text/grammar/grammar.hpp"
#include "text/grammar/regex_reader.hpp"

namespace cyb {
namespace text {

JsonSchemaCompiler::JsonSchemaCompiler(const SchemaJson& document, GrammarBudget& budget)
    : budget_(budget), document_(document), reader_(document, budget) {
  define_basics();
}

/// A reference to the rule of a schema, which is written later. Equal schemas share a rule.
Result<ExprId> JsonSchemaCompiler::value_of(const SchemaPart& part) {
  CYB_TRY(budget_.check(part.path));
  const bool refers = part.schema.is_object() && part.schema.contains("$ref");
  CYB_ASSIGN(SchemaPart meant, reader_.follow(part));
  const std::size_t depth = refers ? 1 : depth_ + 1;
  if (depth > kMaxGrammarDepth)
    return schema_error(part.path, fmt::format("more than {} levels of schemas", kMaxGrammarDepth));
  if (meant.schema.is_boolean() && !meant.schema.get<bool>()) return rules_.never();
  std::string key = meant.schema.dump();
  const auto found = known_.find(key);
  if (found != known_.end()) return rules_.rule(found->second);
  const RuleId rule = rules_.declare(meant.path);
  known_.emplace(std::move(key), rule);
  tasks_.push_back({std::move(meant), rule, depth});
  return rules_.rule(rule);
}

Result<void> JsonSchemaCompiler::write(const Task& task) {
  depth_ = task.depth;
  CYB_ASSIGN(const FlatSchema schema, reader_.flatten(task.part));
  ExprId body = rules_.never();
  if (!schema.choices.empty() && !schema.never) {
    CYB_ASSIGN(body, choices(schema));
  } else if (!schema.never) {
    CYB_ASSIGN(body, flat(schema));
  }
  rules_.define(task.rule, body);
  return {};
}

Result<void> JsonSchemaCompiler::check_exclusive(const SchemaChoice& choice) {
  for (std::size_t i = 0; i < choice.parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CYB_ASSIGN(const bool apart, reader_.disjoint(choice.parts[j], choice.parts[i]));
      if (apart) continue;
      return schema_error(
          choice.path,
          fmt::format("alternatives {} and {} may both fit one value, and exactly one must: tell "
                      "them apart by a required property with different const, or use anyOf",
                      j, i));
    }
  }
  return {};
}

/// The first list of alternatives: each with all the rest of the schema.
Result<ExprId> JsonSchemaCompiler::choices(const FlatSchema& schema) {
  const SchemaChoice& first = schema.choices[0];
  if (first.exactly_one) CYB_TRY(check_exclusive(first));
  const std::string_view key = first.exactly_one ? "oneOf" : "anyOf";
  std::vector<SchemaPart> rest;
  for (SchemaPart source : schema.sources) {
    // What these lead to is in the list of sources itself.
    for (const std::string_view own :
         {std::string_view("$ref"), std::string_view("allOf"), kTogether})
      source.schema.erase(std::string(own));
    if (schema_path(source.path, key) == first.path) source.schema.erase(std::string(key));
    bool says_something = false;
    for (const auto& [name, value] : source.schema.items())
      says_something = says_something || !is_schema_annotation(name);
    if (says_something) rest.push_back(std::move(source));
  }
  std::vector<ExprId> parts;
  for (const SchemaPart& alternative : first.parts) {
    std::vector<SchemaPart> all = rest;
    all.push_back(alternative);
    CYB_ASSIGN(const ExprId expr, value_of(together(std::move(all), alternative.path)));
    parts.push_back(expr);
  }
  return rules_.choice(parts);
}

Result<ExprId> JsonSchemaCompiler::flat(const FlatSchema& schema) {
  if (schema.values) return values(schema);
  const unsigned types = schema.possible_types();
  if (types == kAnyType && schema.restricting.empty()) return rules_.rule(any_);
  std::vector<ExprId> parts;
  for (const unsigned type : {kNull, kBoolean, kString, kNumber, kInteger, kArray, kObject}) {
    const bool within = type == kInteger && (types & kNumber) != 0;
    if ((types & type) == 0 || within) continue;
    CYB_ASSIGN(const ExprId expr, typed(schema, type));
    parts.push_back(expr);
  }
  return rules_.choice(parts);
}

/// enum and const: the values of the right types, as they stand.
Result<ExprId> JsonSchemaCompiler::values(const FlatSchema& schema) {
  if (!schema.restricting.empty()) {
    return schema_error(schema.restricting[0],
                        fmt::format("is not supported together with {}", schema.values_path));
  }
  const unsigned types = schema.types.value_or(kAnyType);
  std::vector<ExprId> parts;
  for (const SchemaJson& value : *schema.values) {
    FlatSchema one;
    one.types = types;
    one.values = std::vector<SchemaJson>{value};
    const bool integral =
        value.is_number_integer() || (value.is_number_float() && decimal_of(value.dump()) &&
                                      decimal_of(value.dump())->fraction.empty());
    const bool fraction = value.is_number() && !integral && (types & kNumber) == 0;
    if (one.possible_types() != 0 && !fraction) parts.push_back(written(value));
  }
  return rules_.choice(parts);
}

/// A value as JSON, with white space where objects and lists have it.
ExprId JsonSchemaCompiler::written(const SchemaJson& value) {
  const std::string text = value.dump();
  std::vector<ExprId> parts;
  std::size_t from = 0;
  bool inside = false;
  const auto cut = [&](std::size_t to) {
    parts.push_back(rules_.literal(std::string_view(text).substr(from, to - from)));
    from = to;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside && c == '\\') {
      ++i;
    } else if (c == '"') {
      inside = !inside;
    } else if (!inside && (c == '}' || c == ']') && text[i - 1] != '{' && text[i - 1] != '[') {
      cut(i);
      parts.push_back(rules_.rule(space_));
    } else if (!inside && (c == '{' || c == '[' || c == ',') && text[i + 1] != '}' &&
               text[i + 1] != ']') {
      cut(i + 1);
      parts.push_back(rules_.rule(space_));
    } else if (!inside && c == ':') {
      cut(i + 1);
      parts.push_back(rules_.optional(rules_.literal(" ")));
    }
  }
  cut(text.size());
  return rules_.sequence(parts);
}

Result<ExprId> JsonSchemaCompiler::typed(const FlatSchema& schema, unsigned type) {
  switch (type) {
    case kNull:
      return rules_.literal("null");
    case kBoolean:
      return rules_.choice({rules_.literal("true"), rules_.literal("false")});
    case kString:
      return text(schema);
    case kNumber:
      return number(schema, false);
    case kInteger:
      return number(schema, true);
    case kArray:
      return array(schema);
    default:
      return object(schema);
  }
}

Result<ExprId> JsonSchemaCompiler::text(const FlatSchema& schema) {
  const bool free = !schema.pattern && !schema.format && schema.min_length == 0 &&
                    schema.max_length == kUnbounded;
  if (free) return rules_.rule(string_);
  CYB_ASSIGN(const ExprId body, text_body(schema));
  return rules_.sequence({rules_.literal("\""), body, rules_.literal("\"")});
}

/// Between the quotes.
Result<ExprId> JsonSchemaCompiler::text_body(const FlatSchema& schema) {
  const bool counted = schema.min_length != 0 || schema.max_length != kUnbounded;
  if ((schema.pattern && schema.format) || (counted && (schema.pattern || schema.format))) {
    return schema_error(schema.text_path,
                        "only one of pattern, format, and minLength or maxLength is supported at "
                        "a time");
  }
  if (counted) {
    if (schema.min_length > schema.max_length) return rules_.never();
    return rules_.repeat(rules_.rule(char_), schema.min_length, schema.max_length);
  }
  std::string_view pattern;
  if (schema.pattern) pattern = *schema.pattern;
  if (schema.format) {
    const char* known = format_pattern(*schema.format);
    if (known == nullptr)
      return schema_error(schema.text_path,
                          fmt::format("format \"{}\" is not supported", *schema.format));
    pattern = known;
  }
  auto source = SourceText::open(pattern);
  const RegexOptions options{.search = schema.pattern.has_value(), .json = true};
  auto body = source ? read_regex(rules_, *source, options, budget_)
                     : Result<ExprId>(fail(std::move(source).error()));
  if (!body) return schema_error(schema.text_path, body.error());
  return body;
}

Result<ExprId> JsonSchemaCompiler::number(const FlatSchema& schema, bool whole) {
  if (schema.multiple_of) {
    if (schema.range.bounded())
      return schema_error(schema_path(schema.path, "multipleOf"),
                          "is not supported together with bounds");
    return integer_multiples(rules_, *schema.multiple_of);
  }
  if (!schema.range.bounded()) return rules_.rule(whole ? integer_ : number_);
  return whole ? integer_between(rules_, schema.range) : decimal_between(rules_, schema.range);
}

Result<void> JsonSchemaCompiler::write_all() {
  while (!tasks_.empty()) {
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    CYB_TRY(write(task));
  }
  return {};
}

Result<GrammarRules> JsonSchemaCompiler::run(std::span<const std::string> pointers,
                                             std::vector<ExprId>& values) {
  for (const std::string& pointer : pointers) {
    CYB_ASSIGN(const ExprId value, value_of({SchemaJson{{"$ref", pointer}}, pointer}));
    values.push_back(value);
  }
  CYB_TRY(write_all());
  return std::move(rules_);
}

Result<GrammarRules> JsonSchemaCompiler::run() {
  // The root is a rule of its own, so that "#" can refer to itself.
  CYB_ASSIGN(const ExprId root, value_of({document_, "#"}));
  CYB_TRY(write_all());
  rules_.root = rules_.declare("#");
  rules_.define(rules_.root, root);
  return std::move(rules_);
}

namespace {

/// Levels of brackets outside of texts.
std::size_t json_depth(std::string_view source) {
  std::size_t depth = 0, deepest = 0;
  bool inside = false;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (inside && c == '\\') ++i;
    if (c == '"') inside = !inside;
    if (inside) continue;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace

Result<SchemaJson> parse_schema(std::string_view source) {
  CYB_TRY(SourceText::open(source));
  // A schema within a schema is two levels of JSON.
  if (json_depth(source) > 2 * kMaxGrammarDepth + 2) {
    return fail(
        grammar_error("#", fmt::format("more than {} levels of schemas", kMaxGrammarDepth)));
  }
  if (const std::size_t at = find_wide_integer(source); at != std::string_view::npos) {
    return fail(grammar_error(line_and_column(source, at), "the number does not fit 64 bits"));
  }
  try {
    return SchemaJson::parse(source);
  } catch (const SchemaJson::parse_error& error) {
    return fail(grammar_error(line_and_column(source, error.byte > 0 ? error.byte - 1 : 0),
                              "this is not JSON"));
  } catch (const SchemaJson::exception&) {  // what else the reader has: numbers beyond a double
    return fail(grammar_error("#", "a number does not fit 64 bits"));
  }
}

}  // namespace text

Result<std::shared_ptr<const Grammar>> Grammar::from_json_schema(std::string_view schema,
                                                                 const GrammarLead& lead) {
  text::GrammarBudget budget;
  CYB_ASSIGN(const text::SchemaJson document, text::parse_schema(schema));
  CYB_ASSIGN(text::GrammarRules rules, text::JsonSchemaCompiler(document, budget).run());
  return compile(rules, budget, lead);
}

Result<std::shared_ptr<const Grammar>> Grammar::any_json_object() {
  return from_json_schema(R"({"type": "object"})");
}

}  // namespace cyb
