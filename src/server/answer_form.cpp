// What an answer must be and how it is read: one grammar at most, the format of calls, reasoning.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/chat.hpp"
#include "server/grammar_cache.hpp"
#include "server/tool_fields.hpp"
#include "text/template/chat_json.hpp"
#include "text/tokenizer.hpp"

namespace cyb::server {
namespace {

using Kind = ChatValue::Kind;
using enum FieldType;

constexpr Field kFormat[] = {{"type", kString, FieldState::kBuilt, 1, 32},
                             {"json_schema", kObject, FieldState::kBuilt, 1, 4}};
constexpr Field kSchema[] = {{"name", kString, FieldState::kBuilt, 0, 64},
                             {"description", kString, FieldState::kBuilt, 0, 1 << 20},
                             {"strict", kBool},
                             {"schema", kObject, FieldState::kBuilt, 0, 4096}};

using Maker = Result<std::shared_ptr<const Grammar>> (*)(std::string_view, const GrammarLead&);

/// The one field that restricts the form of the content.
struct Form {
  std::string_view field{};  // empty: none
  std::string source{};
  Maker make = nullptr;
  bool schema = false;
};

ApiResult<void> read_response_format(const Fields& fields, Form& out) {
  const ChatValue* format = fields.find("response_format");
  if (format == nullptr) return {};
  CYB_API_ASSIGN(const Fields members, check_fields(*format, kFormat, "response_format"));
  const std::string_view type = members.text("type").value_or("");
  const ChatValue* described = members.find("json_schema");
  if (type == "text" && described == nullptr) return {};
  out = {"response_format", R"({"type": "object"})", Grammar::from_json_schema, true};
  if (type == "json_object" && described == nullptr) return {};
  if (type != "json_schema" || described == nullptr) {
    return refuse(bad_value("response_format",
                            "must be {\"type\": \"text\"}, {\"type\": \"json_object\"} or "
                            "{\"type\": \"json_schema\", \"json_schema\": {...}}"));
  }
  CYB_API_ASSIGN(const Fields schema,
                 check_fields(*described, kSchema, "response_format.json_schema"));
  if (const ChatValue* own = schema.find("schema")) out.source = chat_json_text(*own);
  return {};
}

ApiResult<Form> read_form(const Fields& fields) {
  struct Language {
    std::string_view field;
    Maker make;
  };
  static constexpr Language kLanguages[] = {{"grammar", Grammar::from_gbnf},
                                            {"regex", Grammar::from_regex},
                                            {"lark", Grammar::from_lark}};
  Form out;
  CYB_API_TRY(read_response_format(fields, out));
  const auto taken = [&](std::string_view field) {
    return refuse(
        bad_value(field, fmt::format("and '{}' both say what the answer must be", out.field)));
  };
  if (const ChatValue* schema = fields.find("json_schema")) {
    out = {"json_schema", chat_json_text(*schema), Grammar::from_json_schema, true};
  }
  for (const Language& language : kLanguages) {
    const auto source = fields.text(language.field);
    if (!source) continue;
    if (!out.field.empty()) return taken(language.field);
    out = {language.field, std::string(*source), language.make, false};
  }
  return out;
}

ApiResult<void> constrain(const Served& served, std::string_view field, std::string_view key,
                          const std::function<GrammarCache::Made()>& make, CompletionRequest& out) {
  if (!out.generate.options.stop.empty()) {
    return refuse(bad_value("stop", fmt::format("would cut the answer that '{}' asks for", field)));
  }
  auto made = served.grammars->find_or_make(key, make);
  if (!made) {
    ApiError error = bad_value(field, "");
    error.message = fmt::format("'{}': {}.", field, made.error().message());
    return refuse(std::move(error));
  }
  out.generate.options.constraint = *std::move(made);
  out.constraint_key = key;
  return {};
}

std::string lead_key(const GrammarLead& lead) {
  return fmt::format("{}\n{}\n{}\n", lead.open, lead.close, lead.opened);
}

ApiResult<void> constrain_content(const Served& served, const Form& form, const GrammarLead& lead,
                                  CompletionRequest& out) {
  return constrain(
      served, form.field, fmt::format("{}\n{}{}", form.field, lead_key(lead), form.source),
      [&] { return form.make(form.source, lead); }, out);
}

ApiResult<void> constrain_calls(const Served& served, const ToolGrammarOptions& form,
                                std::string_view field, CompletionRequest& out) {
  std::string key = fmt::format("calls\n{}\n{}\n{}\n{}{}\n", form.format->name, form.required,
                                form.several, lead_key(form.lead), form.content);
  for (const ToolFunction& function : form.functions) {
    key += function.name + '\n' + function.parameters + '\n';
  }
  return constrain(served, field, key, [&] { return tool_grammar(form); }, out);
}

/// The last of the prompt as text, control tokens by their names.
std::string prompt_end(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  std::string out;
  for (const std::int32_t id : ids.last(std::min<std::size_t>(ids.size(), 16))) {
    out += tokenizer.is_control(id) ? tokenizer.vocabulary().text(id) : tokenizer.piece(id);
  }
  out.resize(out.find_last_not_of(" \t\r\n") + 1);
  return out;
}

void add_stops(const Tokenizer& tokenizer, const ToolFormat& format, GenerateOptions& options) {
  for (const std::string_view text : format.stops) {
    const std::int32_t id = tokenizer.vocabulary().find(text);
    if (id >= 0 && tokenizer.is_control(id)) options.stop.emplace_back(text);
  }
}

}  // namespace

ApiResult<const ToolFormat*> need_tool_format(const Engine& engine) {
  if (engine.chat_template() == nullptr) return refuse(api_error(engine.chat_error()));
  const ToolFormat* format = recognise_tool_format(engine.chat_template()->source());
  if (format == nullptr) {
    return refuse(
        unsupported("tools", "the form in which this model's template writes calls is not known"));
  }
  return format;
}

ApiResult<void> shape_completion(const Fields& fields, const Served& served,
                                 CompletionRequest& out) {
  CYB_API_ASSIGN(const Form form, read_form(fields));
  if (form.field.empty()) return {};
  return constrain_content(served, form, {}, out);
}

ApiResult<void> shape_chat_answer(const Fields& fields, const Served& served,
                                  const ToolRequest& tools, CompletionRequest& out) {
  const Tokenizer& tokenizer = *served.engine.tokenizer();
  const std::string& source = served.engine.chat_template()->source();
  GenerateOptions& options = out.generate.options;
  const ToolFormat* format = recognise_tool_format(source);
  const bool calls = tools.choice != ToolChoice::kNone;
  if (format != nullptr && !calls && !format->channels) format = nullptr;
  out.split.format = format;
  for (const ToolFunction& function : tools.functions) {
    if (!calls) continue;
    out.split.functions.push_back(function.name);
    if (format == nullptr || format->tags == nullptr) continue;
    out.split.types.push_back(read_argument_types(function.name, function.parameters));
  }
  out.split.reasoning = recognise_reasoning(source);
  const ReasoningMarks& marks = out.split.reasoning;
  const std::string end = prompt_end(tokenizer, out.generate.prompt);
  out.split.in_reasoning = !marks.open.empty() && end.ends_with(marks.open);
  CYB_API_ASSIGN(const Form form, read_form(fields));
  const GrammarLead lead{std::string(marks.open), std::string(marks.close), out.split.in_reasoning};
  const bool fixed =
      calls && (tools.choice == ToolChoice::kRequired || tools.strict || !tools.several);
  const bool channels = format != nullptr && format->channels;
  if (!form.field.empty() && !form.schema && (calls || channels)) {
    return refuse(unsupported(form.field, calls ? "together with 'tools'" : "with this model"));
  }
  if (fixed || (!form.field.empty() && (calls || channels))) {
    ToolGrammarOptions grammar{.format = format,
                               .functions = calls ? tools.functions : std::vector<ToolFunction>(),
                               .required = tools.choice == ToolChoice::kRequired,
                               .several = tools.several,
                               .content = form.source,
                               .lead = lead};
    CYB_API_TRY(constrain_calls(served, grammar, calls ? "tools" : form.field, out));
  } else if (!form.field.empty()) {
    CYB_API_TRY(constrain_content(served, form, lead, out));
  }
  if (format != nullptr) {
    options.shown.assign(format->markers.begin(), format->markers.end());
    add_stops(tokenizer, *format, options);
  }
  if (!marks.open.empty()) {
    options.shown.emplace_back(marks.open);
    options.shown.emplace_back(marks.close);
  }
  return {};
}

}  // namespace cyb::server
