// First all schemas are read and JSON is compiled for the values that are JSON; then every '<' is
// taken out of it (JSON can spell it \u003c), so that no value ends before its end; then the tags
// and the plain texts are written around.
#include "text/tools/tagged_grammar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "text/grammar/json_schema_compiler.hpp"
#include "text/grammar/lead.hpp"
#include "text/grammar/regex_reader.hpp"
#include "text/grammar/source_text.hpp"
#include "text/tools/argument_types.hpp"
#include "text/tools/tagged_scan.hpp"

namespace cyb {
namespace {

using text::CharSet;
using text::ExprId;
using text::FlatSchema;
using text::GrammarRules;
using text::schema_error;
using text::SchemaJson;
using text::SchemaPart;

constexpr std::string_view kNotSo = "cannot be said in the form in which this model writes calls";

/// A path as a reference: there '%' begins an escape.
std::string pointer_to(const std::string& path) {
  std::string out;
  for (const char c : path) out += c == '%' ? std::string("%25") : std::string(1, c);
  return out;
}

struct Argument {
  std::string name;
  bool required = false;
  std::optional<FlatSchema> plain{};  // of a text
  std::size_t json = 0;               // of the compiled values, where it is none
};

class TaggedRules {
 public:
  TaggedRules(const ToolGrammarOptions& options, const SchemaJson& document,
              text::GrammarBudget& budget)
      : options_(options),
        tags_(*options.format->tags),
        document_(document),
        budget_(budget),
        reader_(document, budget) {}

  Result<GrammarRules> run(std::vector<ExprId>& schemas) {
    for (std::size_t i = 0; i < options_.functions.size(); ++i) {
      CYB_TRY(read(options_.functions[i], fmt::format("#/$defs/f{}", i)));
    }
    if (!options_.content.empty()) pointers_.emplace_back("#/$defs/content");
    std::vector<ExprId> values;
    CYB_ASSIGN(rules_, text::JsonSchemaCompiler(document_, budget_).run(pointers_, values));
    CYB_TRY(write_patterns());
    CYB_TRY(keep_tags_out());
    for (const std::vector<Argument>& all : functions_) {
      std::vector<ExprId> entries;
      for (const Argument& argument : all) {
        CYB_ASSIGN(const ExprId body,
                   argument.plain ? plain(*argument.plain) : Result<ExprId>(values[argument.json]));
        const ExprId one = entry(argument.name, body);
        entries.push_back(argument.required ? one : rules_.optional(one));
      }
      schemas.push_back(rules_.sequence(entries));
    }
    if (!options_.content.empty()) schemas.push_back(values.back());
    return std::move(rules_);
  }

 private:
  Result<void> read(const ToolFunction& function, const std::string& path) {
    CYB_ASSIGN(const FlatSchema schema, reader_.flatten({SchemaJson{{"$ref", path}}, path}));
    if (!schema.choices.empty()) return schema_error(schema.choices[0].path, kNotSo);
    if (!schema.property_names.empty()) return schema_error(schema.property_names[0].path, kNotSo);
    if (schema.values) return schema_error(schema.values_path, kNotSo);
    const ArgumentTypes types = read_argument_types(function.name, function.parameters);
    std::vector<Argument> out;
    for (const text::MemberRules& members : schema.members) {
      if (!members.patterns.empty()) return schema_error(members.patterns[0].second.path, kNotSo);
      for (const auto& [name, part] : members.properties) {
        if (std::ranges::find(out, name, &Argument::name) != out.end()) {
          return schema_error(part.path, "is there twice, which " + std::string(kNotSo));
        }
        CYB_ASSIGN(std::optional<Argument> one, argument(name, part, types.of(name)));
        if (one) one->required = schema.requires_name(name);
        if (one) out.push_back(*std::move(one));
      }
    }
    CYB_TRY(check_counts(schema, out));
    functions_.push_back(std::move(out));
    return {};
  }

  Result<void> check_counts(const FlatSchema& schema, const std::vector<Argument>& arguments) {
    for (const std::string& name : schema.required) {
      if (std::ranges::find(arguments, name, &Argument::name) == arguments.end()) {
        return schema_error(schema.path, fmt::format("requires \"{}\", which is no property that "
                                                     "can be written",
                                                     name));
      }
    }
    if (schema.min_properties > schema.required.size() ||
        schema.max_properties < arguments.size()) {
      return schema_error(schema.count_path, kNotSo);
    }
    return {};
  }

  /// Empty where no value fits.
  Result<std::optional<Argument>> argument(const std::string& name, const SchemaPart& part,
                                           unsigned types) {
    const bool fits = !name.empty() && name.size() <= text::TaggedScan::kLongestKey &&
                      name.find_first_of("<>\n") == std::string::npos;
    if (!fits) return schema_error(part.path, "the name " + std::string(kNotSo));
    Argument out{name};
    if (is_plain_text(types, tags_)) {
      CYB_ASSIGN(FlatSchema schema, reader_.flatten(part));
      if (schema.never) return std::optional<Argument>();
      if (!schema.choices.empty()) return schema_error(schema.choices[0].path, kNotSo);
      const bool texts = (schema.possible_types() & text::kString) != 0;
      if (!texts || (types == 0 && !schema.restricting.empty())) {
        return schema_error(part.path, "needs a type in the form in which this model writes calls");
      }
      out.plain = std::move(schema);
    } else {
      if (part.schema.is_boolean() && !part.schema.get<bool>()) return std::optional<Argument>();
      out.json = pointers_.size();
      pointers_.push_back(pointer_to(part.path));
    }
    return std::optional(std::move(out));
  }

  /// Patterns of plain texts, by their source: their sets lose '<' with the others.
  Result<void> write_patterns() {
    for (const std::vector<Argument>& all : functions_) {
      for (const Argument& argument : all) {
        if (!argument.plain || (!argument.plain->pattern && !argument.plain->format)) continue;
        CYB_TRY(write_pattern(*argument.plain));
      }
    }
    return {};
  }

  Result<void> write_pattern(const FlatSchema& schema) {
    const bool counted = schema.min_length != 0 || schema.max_length != text::kUnbounded;
    if (schema.values || counted || (schema.pattern && schema.format)) {
      return schema_error(schema.text_path,
                          "only one of enum, const, pattern, format, and minLength or maxLength is "
                          "supported at a time");
    }
    const std::string own = schema.pattern.value_or("");
    const char* known = schema.format ? text::format_pattern(*schema.format) : own.c_str();
    if (known == nullptr) {
      return schema_error(schema.text_path,
                          fmt::format("format \"{}\" is not supported", *schema.format));
    }
    auto source = text::SourceText::open(known);
    if (!source) return schema_error(schema.text_path, source.error());
    auto body = text::read_regex(rules_, *source, {.search = schema.pattern.has_value()}, budget_);
    if (!body) return schema_error(schema.text_path, body.error());
    patterns_.push_back(*body);
    return {};
  }

  /// What a pattern's '.' is not in JSON goes with '<'.
  Result<void> keep_tags_out() {
    CharSet out = CharSet::of('<');
    out.add(CharSet::of('\r'));
    out.add(0x2028, 0x2029);
    if (!rules_.exclude(out)) {
      return schema_error("#", "a pattern or a name needs '<', which " + std::string(kNotSo));
    }
    if (!rules_.lacks(tags_.value_end)) {
      return schema_error("#", fmt::format("a value has {}, which {}", tags_.value_end, kNotSo));
    }
    return {};
  }

  /// Up to the tag that ends it, where it is not bound.
  Result<ExprId> plain(const FlatSchema& schema) {
    if (schema.values) {
      std::vector<ExprId> parts;
      for (const SchemaJson& value : *schema.values) {
        if (!value.is_string()) continue;
        const auto& own = value.get_ref<const std::string&>();
        if (own.find(tags_.value_end) != std::string::npos) {
          return schema_error(schema.values_path,
                              fmt::format("{} in a value {}", tags_.value_end, kNotSo));
        }
        parts.push_back(rules_.literal(own));
      }
      return rules_.choice(parts);
    }
    if (schema.pattern || schema.format) return patterns_[n_patterns_++];
    if (schema.min_length == 0 && schema.max_length == text::kUnbounded) {
      return text::text_before(rules_, tags_.value_end, false);
    }
    if (schema.min_length > schema.max_length) return rules_.never();
    return rules_.repeat(rules_.one_of(CharSet::of('<').negated()), schema.min_length,
                         schema.max_length);
  }

  ExprId entry(const std::string& name, ExprId body) {
    const ExprId line = rules_.literal(tags_.lines ? "\n" : "");
    return rules_.sequence({rules_.literal(tags_.key), rules_.literal(name),
                            rules_.literal(tags_.key_end), rules_.literal(tags_.gap),
                            rules_.literal(tags_.value), line, body, line,
                            rules_.literal(tags_.value_end), rules_.literal(tags_.after)});
  }

  const ToolGrammarOptions& options_;
  const ToolTags& tags_;
  const SchemaJson& document_;
  text::GrammarBudget& budget_;
  text::SchemaReader reader_;
  GrammarRules rules_;
  std::vector<std::string> pointers_;  // of values that are JSON, then of the content
  std::vector<std::vector<Argument>> functions_;
  std::vector<ExprId> patterns_;  // in the order of arguments
  std::size_t n_patterns_ = 0;
};

}  // namespace

Result<GrammarRules> tagged_rules(const ToolGrammarOptions& options, const SchemaJson& document,
                                  text::GrammarBudget& budget, std::vector<ExprId>& schemas) {
  return TaggedRules(options, document, budget).run(schemas);
}

}  // namespace cyb
