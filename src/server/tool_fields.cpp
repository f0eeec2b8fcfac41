// Rules of tools and messages; answer_form.cpp has those of grammars.
#include "server/tool_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/chat.hpp"
#include "server/completion_fields.hpp"
#include "text/template/chat_json.hpp"
#include "text/tools/tool_prompt.hpp"

namespace cyb::server {
namespace {

using Kind = ChatValue::Kind;
using enum FieldType;

constexpr std::size_t kMaxNameBytes = 64, kMaxCalls = 128;
constexpr std::string_view kNoParameters =
    R"({"type":"object","properties":{},"additionalProperties":false})";

constexpr Field kTool[] = {{"type", kString, FieldState::kBuilt, 1, 16},
                           {"function", kObject, FieldState::kBuilt, 1, 8}};
constexpr Field kFunction[] = {{"name", kString, FieldState::kBuilt, 1, kMaxNameBytes},
                               {"description", kString, FieldState::kBuilt, 0, 1 << 20},
                               {"parameters", kObject, FieldState::kBuilt, 0, 4096},
                               {"strict", kBool}};
constexpr Field kChoice[] = {{"type", kString, FieldState::kBuilt, 1, 16},
                             {"function", kObject, FieldState::kBuilt, 1, 1},
                             {"allowed_tools", kObject, FieldState::kBuilt, 1, 2}};
constexpr Field kAllowedTools[] = {
    {"mode", kString, FieldState::kBuilt, 1, 16, "", "", true},
    {"tools", kList, FieldState::kBuilt, 1, kMaxTools, "", "", true}};
constexpr Field kCall[] = {{"id", kString, FieldState::kBuilt, 1, 256},
                           {"type", kString, FieldState::kBuilt, 1, 16},
                           {"index", kInteger, FieldState::kBuilt, 0, kMaxCalls},
                           {"function", kObject, FieldState::kBuilt, 1, 2}};
constexpr Field kCalled[] = {{"name", kString, FieldState::kBuilt, 1, kMaxNameBytes},
                             {"arguments", kString, FieldState::kBuilt, 0, 10 << 20}};

ApiResult<Fields> check_at(const std::string& at, const ChatValue& value,
                           std::span<const Field> table) {
  if (value.kind != Kind::kObject) return refuse(bad_value(at, "must be an object"));
  return check_fields(value, table, at);
}

bool is_name(std::string_view name) {
  static constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

ApiResult<ToolFunction> read_function(const Fields& function, const std::string& at) {
  ToolFunction out;
  out.name = function.text("name").value_or("");
  if (!is_name(out.name)) {
    return refuse(bad_value(at + ".name", "must be 1 to 64 letters, digits, '_', '-' and '.'"));
  }
  const ChatValue* parameters = function.find("parameters");
  if (parameters == nullptr) {
    out.parameters = kNoParameters;
    return out;
  }
  const Fields schema(*parameters);
  const ChatValue* type = schema.find("type");
  if (type != nullptr && type->text != "object") {
    return refuse(bad_value(at + ".parameters", "must be the schema of an object"));
  }
  ChatValue typed = *parameters;
  if (type == nullptr) typed.members.emplace_back("type", ChatValue::of("object"));
  out.parameters = chat_json_text(typed);
  return out;
}

ApiResult<void> read_tool(const ChatValue& tool, std::size_t index, ToolRequest& out) {
  const std::string at = fmt::format("tools[{}]", index);
  CYB_API_ASSIGN(const Fields fields, check_at(at, tool, kTool));
  if (fields.text("type").value_or("") != "function") {
    return refuse(unsupported(at + ".type", "only \"function\""));
  }
  const ChatValue* function = fields.find("function");
  if (function == nullptr) return refuse(bad_value(at + ".function", "is missing"));
  CYB_API_ASSIGN(const Fields members, check_at(at + ".function", *function, kFunction));
  CYB_API_ASSIGN(ToolFunction read, read_function(members, at + ".function"));
  if (std::ranges::find(out.functions, read.name, &ToolFunction::name) != out.functions.end()) {
    return refuse(bad_value(at + ".function.name", "is the name of two functions"));
  }
  out.strict = out.strict || members.is_true("strict");
  out.functions.push_back(std::move(read));
  out.tools.push_back(tool);
  return {};
}

ApiResult<ToolChoice> read_mode(const std::string& mode, const char* field, bool none) {
  if (mode == "auto") return ToolChoice::kAuto;
  if (mode == "required") return ToolChoice::kRequired;
  if (mode == "none" && none) return ToolChoice::kNone;
  return refuse(bad_value(field, none ? "must be \"none\", \"auto\", \"required\" or a function"
                                      : "must be \"auto\" or \"required\""));
}

/// {"type": "function", "function": {"name"}}, of the functions that are offered.
ApiResult<ToolFunction> named_function(const ChatValue& choice, const ToolRequest& tools) {
  CYB_API_ASSIGN(const Fields fields, check_at("tool_choice", choice, kChoice));
  const ChatValue* function = fields.find("function");
  if (fields.text("type").value_or("") != "function" || function == nullptr) {
    return refuse(
        unsupported("tool_choice", "only {\"type\":\"function\",\"function\":{\"name\"}}"));
  }
  const std::string name(Fields(*function).text("name").value_or(""));
  const auto named = std::ranges::find(tools.functions, name, &ToolFunction::name);
  if (named == tools.functions.end()) {
    return refuse(bad_value("tool_choice", "names a function that is not among 'tools'"));
  }
  return *named;
}

/// The template sees all tools; those that are listed may be called.
ApiResult<void> read_allowed(const ChatValue& allowed, ToolRequest& out) {
  CYB_API_ASSIGN(const Fields fields,
                 check_at("tool_choice.allowed_tools", allowed, kAllowedTools));
  CYB_API_ASSIGN(out.choice, read_mode(std::string(*fields.text("mode")),
                                       "tool_choice.allowed_tools.mode", false));
  std::vector<ToolFunction> functions;
  for (const ChatValue& one : fields.find("tools")->items) {
    CYB_API_ASSIGN(ToolFunction function, named_function(one, out));
    if (std::ranges::find(functions, function.name, &ToolFunction::name) == functions.end()) {
      functions.push_back(std::move(function));
    }
  }
  out.functions = std::move(functions);
  return {};
}

ApiResult<void> read_choice(const ChatValue& choice, ToolRequest& out) {
  if (choice.kind == Kind::kString) {
    CYB_API_ASSIGN(out.choice, read_mode(choice.text, "tool_choice", true));
    return {};
  }
  CYB_API_ASSIGN(const Fields fields, check_at("tool_choice", choice, kChoice));
  const ChatValue* allowed = fields.find("allowed_tools");
  if (allowed != nullptr && fields.text("type") == "allowed_tools") {
    return read_allowed(*allowed, out);
  }
  CYB_API_ASSIGN(ToolFunction function, named_function(choice, out));
  out.functions = {std::move(function)};
  out.choice = ToolChoice::kRequired;
  out.several = false;
  return {};
}

ChatValue* member(ChatValue& object, std::string_view name) {
  const auto at =
      std::ranges::find(object.members, name, &std::pair<std::string, ChatValue>::first);
  return at == object.members.end() ? nullptr : &at->second;
}

void write_arguments_as_text(ChatValue& message) {
  ChatValue* calls = member(message, "tool_calls");
  if (calls == nullptr) return;
  for (ChatValue& call : calls->items) {
    ChatValue* function = member(call, "function");
    ChatValue* arguments = function == nullptr ? nullptr : member(*function, "arguments");
    if (arguments == nullptr || arguments->kind != Kind::kObject) continue;
    const std::string text = chat_json_text(*arguments);
    *arguments = ChatValue::of(std::string_view(text));
  }
}

/// A conversation with a call whose arguments are an object, as the template shows it; empty where
/// it cannot.
std::string shown_call(const ChatTemplate& chat, ChatValue content) {
  const auto text = [](const char* value) { return ChatValue::of(value); };
  ChatValue function = ChatValue::object(
      {{"name", text("f")}, {"arguments", ChatValue::object({{"cyb_key", text("v")}})}});
  ChatValue call = ChatValue::object(
      {{"id", text("call00001")}, {"type", text("function")}, {"function", std::move(function)}});
  ChatInput input;
  input.add_generation_prompt = false;
  input.messages = {
      ChatValue::object({{"role", text("user")}, {"content", text("x")}}),
      ChatValue::object({{"role", text("assistant")},
                         {"content", std::move(content)},
                         {"tool_calls", ChatValue::list({std::move(call)})}}),
      ChatValue::object(
          {{"role", text("tool")}, {"content", text("y")}, {"tool_call_id", text("call00001")}})};
  const auto shown = chat.render(std::move(input));
  return shown ? joined_text(*shown) : std::string();
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++n;
  return n;
}

/// How a template takes messages with calls.
struct CallForm {
  bool objects = false;     // arguments; else as texts
  bool empty_text = false;  // no content as an empty text: it would show None, or fail
};

/// Arguments are objects where their keys show, in another form than Python's own of an object.
CallForm call_form(const ChatTemplate& chat) {
  const std::string none = shown_call(chat, ChatValue::null());
  const std::string empty = shown_call(chat, ChatValue::of(""));
  CallForm out;
  out.empty_text =
      none.empty() ? !empty.empty() : !empty.empty() && count(none, "None") > count(empty, "None");
  const std::string& prompt = out.empty_text ? empty : none;
  out.objects =
      prompt.find("cyb_key") != std::string::npos && prompt.find("'cyb_key'") == std::string::npos;
  return out;
}

void write_content_as_text(ChatValue& message) {
  ChatValue* content = member(message, "content");
  if (content == nullptr || content->kind != Kind::kNull) return;
  *content = ChatValue::of("");
}

}  // namespace

ApiResult<ToolRequest> read_tools(const Fields& fields) {
  ToolRequest out;
  const ChatValue* tools = fields.find("tools");
  const ChatValue* choice = fields.find("tool_choice");
  const bool any = tools != nullptr && !tools->items.empty();
  if (!any) {
    if (choice != nullptr && choice->text != "none" && choice->text != "auto") {
      return refuse(bad_value("tool_choice", "needs 'tools'"));
    }
    return out;
  }
  for (std::size_t i = 0; i < tools->items.size(); ++i) {
    CYB_API_TRY(read_tool(tools->items[i], i, out));
  }
  out.choice = ToolChoice::kAuto;
  out.several = fields.flag("parallel_tool_calls").value_or(true);
  if (choice != nullptr) CYB_API_TRY(read_choice(*choice, out));
  return out;
}

ApiResult<ChatValue> read_tool_call(const ChatValue& one, const std::string& at) {
  CYB_API_ASSIGN(const Fields call, check_at(at, one, kCall));
  const ChatValue* function = call.find("function");
  if (function == nullptr || call.text("type").value_or("function") != "function") {
    return refuse(bad_value(at, "must be a call of a function"));
  }
  CYB_API_ASSIGN(const Fields called, check_at(at + ".function", *function, kCalled));
  const std::string name(called.text("name").value_or(""));
  if (!is_name(name)) return refuse(bad_value(at + ".function.name", "is no function's name"));
  const std::string text(called.text("arguments").value_or("{}"));
  auto arguments = parse_chat_json(text.empty() ? "{}" : text, "arguments");
  if (!arguments || arguments->kind != Kind::kObject) {
    return refuse(bad_value(at + ".function.arguments", "must be the text of a JSON object"));
  }
  ChatValue shown = ChatValue::object();
  if (const auto id = call.text("id")) shown.members.emplace_back("id", ChatValue::of(*id));
  shown.members.emplace_back("type", ChatValue::of("function"));
  shown.members.emplace_back("function",
                             ChatValue::object({{"name", ChatValue::of(std::string_view(name))},
                                                {"arguments", *std::move(arguments)}}));
  return shown;
}

ApiResult<ChatValue> read_tool_calls(const ChatValue& calls, const std::string& where) {
  if (calls.kind != Kind::kList || calls.items.size() > kMaxCalls) {
    return refuse(bad_value(where, fmt::format("must be a list of at most {} calls", kMaxCalls)));
  }
  ChatValue out = ChatValue::list();
  for (std::size_t i = 0; i < calls.items.size(); ++i) {
    CYB_API_ASSIGN(ChatValue call, read_tool_call(calls.items[i], fmt::format("{}[{}]", where, i)));
    out.items.push_back(std::move(call));
  }
  return out;
}

ApiResult<void> put_tools(const Engine& engine, const ToolRequest& tools, ChatInput& input) {
  const bool offered = tools.choice != ToolChoice::kNone;
  const bool used = std::ranges::any_of(input.messages, [](ChatValue& message) {
    return member(message, "tool_calls") != nullptr || member(message, "tool_call_id") != nullptr;
  });
  if ((!offered && !used) || engine.chat_template() == nullptr) return {};
  CYB_API_ASSIGN(const ToolFormat* format, need_tool_format(engine));
  const std::vector<ChatValue> shown = offered ? tools.tools : std::vector<ChatValue>();
  if (needs_tool_prompt(*format)) {
    write_tools_as_text(*format, shown, input.messages);
    return {};
  }
  if (offered) input.tools = ChatValue::list(shown);
  if (!used) return {};
  const CallForm form = call_form(*engine.chat_template());
  for (ChatValue& message : input.messages) {
    if (!form.objects) write_arguments_as_text(message);
    if (form.empty_text) write_content_as_text(message);
  }
  return {};
}

}  // namespace cyb::server
