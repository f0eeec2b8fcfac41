// Names and meanings: https://platform.openai.com/docs/api-reference/responses.
#include "server/responses_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "server/completion_fields.hpp"
#include "server/responses_input.hpp"
#include "server/translated_request.hpp"
#include "text/template/chat_json.hpp"

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;
using Kind = ChatValue::Kind;

constexpr std::string_view kLogprobsIncluded = "message.output_text.logprobs";
constexpr double kBig = 2147483647.0, kLongText = 1e7;

constexpr Field kText[] = {
    {"format", kObject, kBuilt, 0, 8, "{\"type\":\"text\"}", "what the text must be", false,
     nullptr, "ResponsesFormat"},
    {"verbosity", kString, kOnly, 0, 0, "\"medium\""},
};

constexpr Field kStreamOptions[] = {{"include_obfuscation", kBool, kOnly, 0, 0, "false"}};

std::span<const Field> responses_stream_fields() {
  return kStreamOptions;
}

/// Those that chat takes too go on to it as they are.
constexpr std::string_view kOfChat[] = {
    "model",
    "stream",
    "seed",
    "top_k",
    "min_p",
    "typical_p",
    "user",
    "service_tier",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "chat_template_kwargs",
};

constexpr Field kOwn[] = {
    {"input", kAny, kBuilt, 0, 0, "", "a text, or items", true, nullptr, "ResponsesInput"},
    {"instructions", kString, kBuilt, 0, kLongText, "", "a system message before the input"},
    {"max_output_tokens", kInteger, kBuilt, 1, kBig, "to the end of the context", "of the answer"},
    {"top_logprobs", kInteger, kBuilt, 0, kMaxTopLogprobs, "none", "likeliest tokens of each step"},
    {"include", kStrings, kBuilt, 0, 8, "[]", "\"message.output_text.logprobs\""},
    {"stream_options", kObject, kBuilt, 0, 0, "", "", false, responses_stream_fields},
    {"text", kObject, kBuilt, 0, 0, "", "{\"format\": ...}", false, responses_text_fields},
    {"truncation", kString, kBuilt, 1, 16, "disabled", "disabled; auto: the oldest tokens go"},
    {"store", kBool, kOnly, 0, 0, "false", "nothing is kept"},
    {"previous_response_id", kString, kRefused, 0, 0, "", "no response is kept"},
    {"conversation", kAny, kRefused, 0, 0, "", "no conversation is kept"},
    {"background", kBool, kOnly, 0, 0, "false"},
    {"tools", kList, kBuilt, 0, kMaxTools, "[]", "functions that the answer may call", false,
     nullptr, "ResponsesTool"},
    {"tool_choice", kAny, kBuilt, 0, 0, "auto", "none, auto, required, a function, or a list",
     false, nullptr, "ResponsesToolChoice"},
    {"max_tool_calls", kInteger, kRefused, 0, 0, "", "the server runs no tools itself"},
    {"reasoning", kObject, kOnly, 0, 0, "{}"},
    {"prompt", kObject, kRefused, 0, 0, "", "no prompts are kept"},
    {"moderation", kAny, kRefused, 0, 0, "", "the server moderates nothing"},
    {"context_management", kList, kOnly, 0, 0, "[]"},
    {"prompt_cache_key", kString, kRefused, 0, 0, "", "equal beginnings are found by themselves"},
    {"prompt_cache_options", kObject, kRefused},
    {"prompt_cache_retention", kString, kRefused},
    {"safety_identifier", kString, kRefused},
};

/// `instructions` and `input` as messages.
ApiResult<ChatValue> read_input(const Fields& fields) {
  std::vector<ChatValue> messages;
  if (const ChatValue* instructions = fields.find("instructions")) {
    messages.push_back(plain_message("system", *instructions));
  }
  const ChatValue& input = *fields.find("input");
  if (input.kind == Kind::kString) {
    messages.push_back(plain_message("user", input));
    return ChatValue::list(std::move(messages));
  }
  if (input.kind != Kind::kList || input.items.empty() || input.items.size() > kMaxMessages) {
    return refuse(
        bad_value("input", fmt::format("must be a text or a list of 1 to {} items", kMaxMessages)));
  }
  CYB_API_TRY(read_responses_items(input, messages));
  return ChatValue::list(std::move(messages));
}

/// {"type": "json_schema", "name", "schema", ...} as chat's response_format, which has all but the
/// type one level deeper.
ChatValue response_format(const ChatValue& format) {
  if (Fields(format).text("type") != "json_schema") return format;
  ChatValue inner = ChatValue::object();
  for (const auto& member : format.members) {
    if (member.first != "type") inner.members.push_back(member);
  }
  ChatValue out = ChatValue::object();
  out.members.emplace_back("type", ChatValue::of("json_schema"));
  out.members.emplace_back("json_schema", std::move(inner));
  return out;
}

ApiResult<void> set_logprobs(const Fields& fields, TranslatedRequest& chat) {
  bool wanted = fields.find("top_logprobs") != nullptr;
  if (const ChatValue* include = fields.find("include")) {
    const bool one = include->kind == Kind::kString;
    const bool known = !one && std::ranges::all_of(include->items, [](const ChatValue& item) {
      return item.text == kLogprobsIncluded;
    });
    if (!known) {
      return refuse(unsupported("include", fmt::format("only [\"{}\"]", kLogprobsIncluded)));
    }
    wanted = wanted || !include->items.empty();
  }
  if (!wanted) return {};
  chat.set("logprobs", "top_logprobs", ChatValue::of(true));
  chat.copy(fields, "top_logprobs");
  return {};
}

ApiResult<TranslatedRequest> translate(const Fields& fields) {
  TranslatedRequest chat;
  CYB_API_ASSIGN(ChatValue messages, read_input(fields));
  chat.set("messages", "input", std::move(messages));
  for (const std::string_view name : kOfChat) chat.copy(fields, name);
  chat.copy(fields, "max_output_tokens", "max_completion_tokens");
  CYB_API_TRY(set_logprobs(fields, chat));
  if (const ChatValue* tools = fields.find("tools")) {
    CYB_API_ASSIGN(ChatValue list, read_responses_tools(*tools));
    chat.set("tools", "tools", std::move(list));
  }
  if (const ChatValue* choice = fields.find("tool_choice")) {
    CYB_API_ASSIGN(ChatValue chosen, read_responses_choice(*choice));
    chat.set("tool_choice", "tool_choice", std::move(chosen));
  }
  if (const auto cut = fields.text("truncation")) {
    if (*cut != "auto" && *cut != "disabled") {
      return refuse(bad_value("truncation", "must be \"auto\" or \"disabled\""));
    }
    chat.set("overflow", "truncation", ChatValue::of(*cut == "auto" ? "truncate" : "error"));
  }
  if (const ChatValue* text = fields.find("text")) {
    if (const ChatValue* format = Fields(*text).find("format")) {
      chat.set("response_format", "text.format", response_format(*format));
    }
  }
  return chat;
}

/// As it was asked for, with the members that clients expect.
std::string tool_json(const ChatValue& tool) {
  ChatValue out = tool;
  const Fields fields(tool);
  const auto put = [&](const char* name, ChatValue value) {
    if (fields.find(name) != nullptr) return;
    std::erase_if(out.members, [&](const auto& member) { return member.first == name; });
    out.members.emplace_back(name, std::move(value));
  };
  put("parameters", ChatValue::null());
  put("strict", ChatValue::of(false));
  return chat_json_text(out);
}

std::string echo_json(const Fields& fields) {
  std::string out;
  for (const char* name : {"instructions", "max_output_tokens", "temperature", "top_p", "user"}) {
    const ChatValue* value = fields.find(name);
    out += fmt::format(R"("{}":{},)", name, value == nullptr ? "null" : chat_json_text(*value));
  }
  std::string tools;
  if (const ChatValue* list = fields.find("tools")) {
    for (const ChatValue& tool : list->items) tools += (tools.empty() ? "" : ",") + tool_json(tool);
  }
  const ChatValue* choice = fields.find("tool_choice");
  out += fmt::format(R"("tools":[{}],"tool_choice":{},"parallel_tool_calls":{},)", tools,
                     choice == nullptr ? R"("auto")" : chat_json_text(*choice),
                     fields.flag("parallel_tool_calls").value_or(true));
  const ChatValue* text = fields.find("text");
  const ChatValue* format = text == nullptr ? nullptr : Fields(*text).find("format");
  out += fmt::format(R"("text":{{"format":{}}},)",
                     format == nullptr ? R"({"type":"text"})" : chat_json_text(*format));
  const std::string_view cut = fields.text("truncation").value_or("disabled");
  return out + fmt::format(R"("top_logprobs":{},"truncation":{})",
                           fields.integer("top_logprobs").value_or(0), json_quote(cut));
}

/// Members that chat has one level deeper.
ApiError own_name(ApiError error) {
  for (const std::string_view deep : {"text.format.json_schema.", "tool_choice.allowed_tools."}) {
    if (!error.param.starts_with(deep)) continue;
    std::string name = error.param;
    const std::size_t step = deep.rfind('.', deep.size() - 2);
    name.erase(step, deep.size() - 1 - step);
    return renamed(error, error.param, name);
  }
  return error.param.starts_with("tools[") ? without_function(std::move(error)) : error;
}

std::vector<Field> with_chat_fields() {
  std::vector<Field> out(std::begin(kOwn), std::end(kOwn));
  for (const std::string_view name : kOfChat) {
    const auto field = std::ranges::find(chat_fields(), name, &Field::name);
    if (field != chat_fields().end()) out.push_back(*field);
  }
  return out;
}

}  // namespace

std::span<const Field> responses_fields() {
  static const std::vector<Field> all = with_chat_fields();
  return all;
}

std::span<const Field> responses_text_fields() {
  return kText;
}

ApiResult<ResponsesRequest> read_responses_request(const ChatValue& body, const Served& served) {
  CYB_API_ASSIGN(const Fields fields, check_fields(body, responses_fields()));
  CYB_API_ASSIGN(const TranslatedRequest chat, translate(fields));
  ResponsesRequest out;
  auto completion = chat.read_chat(served);
  if (!completion) return refuse(own_name(std::move(completion).error()));
  out.completion = *std::move(completion);
  out.completion.prompt_field = "input";
  out.echo = echo_json(fields);
  return out;
}

}  // namespace cyb::server
