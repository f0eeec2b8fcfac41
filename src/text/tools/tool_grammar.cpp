// All schemas are parts of one document, each under a name of its own with its references bent to
// it; the texts of the format stand around them.
#include "text/tools/tool_grammar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/grammar/json_schema_compiler.hpp"
#include "text/grammar/lead.hpp"
#include "text/tools/tagged_grammar.hpp"

namespace cyb {
namespace {

using text::ExprId;
using text::GrammarRules;
using text::SchemaJson;

constexpr std::uint64_t kMostCalls = 32;
constexpr std::string_view kContentName = "content";

/// "#/..." becomes "#/$defs/NAME/...", but inside of values.
void bend_references(SchemaJson& schema, const std::string& name) {
  std::vector<SchemaJson*> todo{&schema};
  while (!todo.empty()) {
    SchemaJson* at = todo.back();
    todo.pop_back();
    for (auto& [key, member] : at->items()) {
      if (at->is_object() && (key == "const" || key == "enum" || key == "default")) continue;
      if (at->is_object() && key == "$ref" && member.is_string()) {
        const std::string to = member.get<std::string>();
        if (to.starts_with('#')) member = "#/$defs/" + name + to.substr(1);
      } else if (member.is_structured()) {
        todo.push_back(&member);
      }
    }
  }
}

Result<SchemaJson> read_schema(const std::string& source, const std::string& name) {
  CYB_ASSIGN(SchemaJson schema, text::parse_schema(source));
  bend_references(schema, name);
  return schema;
}

/// An error that names a function instead of its place in our document.
Error placed(const Error& error, const ToolGrammarOptions& options) {
  std::string message(error.message());
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = message.find(from, at)) != std::string::npos; at += to.size()) {
      message.replace(at, from.size(), to);
    }
  };
  for (std::size_t i = options.functions.size(); i > 0; --i) {
    replace(fmt::format("#/$defs/f{}", i - 1),
            fmt::format("function {}: #", options.functions[i - 1].name));
  }
  replace(fmt::format("#/$defs/{}", kContentName), "#");
  return Error(ErrorKind::kInvalidInput, "InvalidInput", message);
}

class Writer {
 public:
  Writer(const ToolGrammarOptions& options, GrammarRules& rules, std::vector<ExprId> schemas)
      : options_(options), rules_(rules), schemas_(std::move(schemas)) {}

  ExprId answer() {
    const bool channels = options_.format->channels;
    ExprId out = options_.functions.empty() ? content() : with_calls();
    if (channels) out = rules_.sequence({rules_.optional(analysis()), out});
    if (options_.lead.close.empty() || channels) return out;
    return rules_.sequence({text::lead_expr(rules_, options_.lead), out});
  }

 private:
  ExprId with_calls() {
    if (options_.required) return calls();
    const bool beside = options_.content.empty() && !options_.format->channels &&
                        !options_.format->free_end.empty() && !opened();
    if (beside) return rules_.sequence({content(), rules_.optional(calls())});
    return rules_.choice({calls(), content()});
  }

  /// The first trigger stands in the prompt.
  bool opened() const { return !options_.format->starts_with.empty(); }

  ExprId calls() {
    const ToolLayout& layout = options_.format->layout;
    std::vector<ExprId> choices;
    for (std::size_t i = 0; i < options_.functions.size(); ++i) {
      choices.push_back(
          rules_.sequence({literal(layout.before), literal(options_.functions[i].name), number(),
                           literal(layout.middle), schemas_[i], literal(layout.after)}));
    }
    const auto call = rules_.declare("a call");
    rules_.define(call, rules_.choice(choices));
    const std::uint64_t more = options_.several && layout.several ? kMostCalls - 1 : 0;
    const ExprId next = rules_.sequence({literal(layout.between), rules_.rule(call)});
    return rules_.sequence({literal(layout.before_all), rules_.rule(call),
                            rules_.repeat(next, 0, more), literal(layout.after_all)});
  }

  ExprId number() {
    if (!options_.format->layout.numbered) return rules_.empty();
    return rules_.sequence(
        {literal(":"), rules_.repeat(rules_.one_of(text::CharSet::range('0', '9')), 1, 4)});
  }

  ExprId content() {
    const ToolFormat& format = *options_.format;
    const ExprId body = options_.content.empty() ? free_text() : schemas_.back();
    if (format.channels) return rules_.sequence({literal("<|channel|>final<|message|>"), body});
    return opened() ? rules_.sequence({literal("all\n"), body}) : body;
  }

  /// Text that is read as no call.
  ExprId free_text() {
    const ToolFormat& format = *options_.format;
    if (format.channels) return text::text_before(rules_, "<|", false);
    const std::string_view marker =
        format.free_end.empty() ? format.markers.front() : format.free_end;
    const bool may_start = std::ranges::find(format.triggers, ToolPlace::kStart,
                                             &ToolTrigger::place) != format.triggers.end();
    if (!format.free_end_too.empty()) {
      const std::string_view markers[] = {marker, format.free_end_too};
      return text::text_without(rules_, markers);
    }
    if (!may_start) return text::text_before(rules_, marker, false);
    text::CharSet first;
    for (const char32_t c : std::u32string_view(U" \t\r\n{[`<")) first.add(text::CharSet::of(c));
    return rules_.optional(rules_.sequence(
        {rules_.one_of(first.negated()), text::text_before(rules_, marker, false)}));
  }

  ExprId analysis() {
    return rules_.sequence({literal("<|channel|>analysis<|message|>"),
                            text::text_before(rules_, "<|end|>", true),
                            literal("<|start|>assistant")});
  }

  ExprId literal(std::string_view text) { return rules_.literal(text); }

  const ToolGrammarOptions& options_;
  GrammarRules& rules_;
  std::vector<ExprId> schemas_;  // of the functions, then of the content
};

}  // namespace

Result<std::shared_ptr<const Grammar>> tool_grammar(const ToolGrammarOptions& options) {
  text::GrammarBudget budget;
  SchemaJson document;
  std::vector<std::string> pointers;
  const auto add = [&](const std::string& source, const std::string& name) -> Result<void> {
    auto schema = read_schema(source, name);
    if (!schema) return fail(std::move(schema).error());
    document["$defs"][name] = *std::move(schema);
    pointers.push_back("#/$defs/" + name);
    return {};
  };
  for (std::size_t i = 0; i < options.functions.size(); ++i) {
    CYB_TRY(add(options.functions[i].parameters, fmt::format("f{}", i)));
  }
  if (!options.content.empty()) CYB_TRY(add(options.content, std::string(kContentName)));
  std::vector<ExprId> schemas;
  const bool tagged = options.format != nullptr && options.format->tags != nullptr;
  auto rules = tagged ? tagged_rules(options, document, budget, schemas)
                      : text::JsonSchemaCompiler(document, budget).run(pointers, schemas);
  if (!rules) return fail(placed(rules.error(), options));
  const auto root = rules->declare("the answer");
  rules->define(root, Writer(options, *rules, std::move(schemas)).answer());
  rules->root = root;
  auto grammar = Grammar::compile(*rules, budget);
  if (!grammar) return fail(placed(grammar.error(), options));
  return grammar;
}

}  // namespace cyb
