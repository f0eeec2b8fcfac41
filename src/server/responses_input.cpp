// Names and meanings: https://platform.openai.com/docs/api-reference/responses. What chat checks is
// left to it; here are the members that it does not have.
#include "server/responses_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/json_text.hpp"
#include "server/completion_fields.hpp"
#include "server/tool_fields.hpp"
#include "server/translated_request.hpp"

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;
using Kind = ChatValue::Kind;

constexpr double kLongText = 1e7;
constexpr std::string_view kSentBack = "of an answer that is sent back";

/// What an answer's own items have beside what is read is taken when they are sent back.
constexpr Field kMessage[] = {
    {"type", kString, kOnly, 0, 0, "\"message\""},
    {"role", kString, kBuilt, 1, 16, "", "user, assistant, system or developer", true},
    {"content", kAny, kBuilt, 0, 0, "", "a text, or parts", true, nullptr, "ResponsesContent"},
    {"id", kString, kBuilt, 0, 512, "", kSentBack},
    {"status", kString, kBuilt, 0, 64, "", kSentBack},
};
constexpr Field kCall[] = {
    {"type", kString, kOnly, 0, 0, "\"function_call\"", "", true},
    {"call_id", kString, kBuilt, 1, 256, "", "what its result names", true},
    {"name", kString, kBuilt, 1, 64, "", "of the function", true},
    {"arguments", kString, kBuilt, 0, kLongText, "", "the text of a JSON object", true},
    {"id", kString, kBuilt, 0, 512, "", kSentBack},
    {"status", kString, kBuilt, 0, 64, "", kSentBack},
};
constexpr Field kOutput[] = {
    {"type", kString, kOnly, 0, 0, "\"function_call_output\"", "", true},
    {"call_id", kString, kBuilt, 1, 256, "", "of the call", true},
    {"output", kAny, kBuilt, 0, 0, "", "a text, or parts", true, nullptr, "ResponsesContent"},
    {"id", kString, kBuilt, 0, 512, "", kSentBack},
    {"status", kString, kBuilt, 0, 64, "", kSentBack},
};
constexpr Field kReasoning[] = {
    {"type", kString, kOnly, 0, 0, "\"reasoning\"", "", true},
    {"content", kList, kBuilt, 0, kMaxMessages, "[]", "of the message or the calls after it", false,
     nullptr, "ResponsesPart"},
    {"summary", kList, kOnly, 0, 0, "[]"},
    {"encrypted_content", kString, kRefused, 0, 0, "", "the server encrypts nothing"},
    {"id", kString, kBuilt, 0, 512, "", kSentBack},
    {"status", kString, kBuilt, 0, 64, "", kSentBack},
};
constexpr Field kPart[] = {
    {"type", kString, kBuilt, 1, 64, "", "input_text or output_text; reasoning_text of reasoning",
     true},
    {"text", kString, kBuilt, 0, kLongText, "", "", true},
    {"annotations", kList, kOnly, 0, 0, "[]"},
    {"logprobs", kList, kBuilt, 0, kLongText, "", kSentBack},
};
constexpr Field kTool[] = {
    {"type", kString, kOnly, 0, 0, "\"function\"", "", true},
    {"name", kString, kBuilt, 1, 64, "", "letters, digits, _ - .", true},
    {"description", kString, kBuilt, 0, 1 << 20},
    {"parameters", kObject, kBuilt, 0, 4096, "", "the JSON schema of an object"},
    {"strict", kBool, kBuilt, 0, 0, "false", "arguments fit the schema"},
};
constexpr Field kNamed[] = {{"type", kString, kOnly, 0, 0, "\"function\"", "", true},
                            {"name", kString, kBuilt, 1, 64, "", "", true}};
constexpr Field kAllowed[] = {{"type", kString, kOnly, 0, 0, "\"allowed_tools\"", "", true},
                              {"mode", kString, kBuilt, 1, 16, "", "", true},
                              {"tools", kList, kBuilt, 1, kMaxTools, "", "", true}};

std::string type_of(const ChatValue& value) {
  const ChatValue* type = Fields(value).find("type");
  return type == nullptr ? std::string() : type->text.substr(0, 64);
}

ApiResult<ChatValue> read_part(const ChatValue& part, const std::string& where, bool reasoning) {
  if (part.kind != Kind::kObject) return refuse(bad_value(where, "must be an object"));
  const std::string type = type_of(part);
  const bool known =
      reasoning ? type == "reasoning_text" : type == "input_text" || type == "output_text";
  if (!type.empty() && !known) {
    return refuse(unsupported(where + ".type", reasoning
                                                   ? "only \"reasoning_text\""
                                                   : "only \"input_text\" and \"output_text\""));
  }
  CYB_API_ASSIGN(const Fields fields, check_fields(part, kPart, where));
  return ChatValue::object(
      {{"type", ChatValue::of("text")}, {"text", ChatValue::of(*fields.text("text"))}});
}

ApiResult<ChatValue> read_content(const ChatValue& content, const std::string& where) {
  if (content.kind == Kind::kString) return content;
  if (content.kind != Kind::kList || content.items.empty()) {
    return refuse(bad_value(where, "must be a text or a list of parts"));
  }
  std::vector<ChatValue> parts;
  for (std::size_t i = 0; i < content.items.size(); ++i) {
    CYB_API_ASSIGN(ChatValue part,
                   read_part(content.items[i], fmt::format("{}[{}]", where, i), false));
    parts.push_back(std::move(part));
  }
  return ChatValue::list(std::move(parts));
}

/// Chat's messages, as items come.
class Conversation {
 public:
  explicit Conversation(std::vector<ChatValue>& messages) : messages_(messages) {}

  ApiResult<void> add(const ChatValue& item, const std::string& where) {
    if (item.kind != Kind::kObject) return refuse(bad_value(where, "must be an object"));
    const std::string type = type_of(item);
    if (type == "function_call") return call(item, where);
    if (type == "function_call_output") return output(item, where);
    if (type == "reasoning") return reasoning(item, where);
    if (type.empty() || type == "message") return message(item, where);
    return refuse(unsupported(
        where + ".type",
        fmt::format("{}; only \"message\", \"function_call\", \"function_call_output\" and "
                    "\"reasoning\"",
                    json_quote(type))));
  }

  /// A message of the assistant that others do not go on with: it has a content at least.
  void close() {
    if (open_ && find("content") == nullptr && find("tool_calls") == nullptr) {
      put("content", ChatValue::of(""));
    }
    open_ = false;
  }

 private:
  const ChatValue* find(std::string_view name) const { return Fields(messages_.back()).find(name); }
  void put(std::string_view name, ChatValue value) {
    messages_.back().members.emplace_back(name, std::move(value));
  }
  void open() {
    close();
    messages_.push_back(ChatValue::object({{"role", ChatValue::of("assistant")}}));
    open_ = true;
  }

  ApiResult<void> message(const ChatValue& item, const std::string& where) {
    CYB_API_ASSIGN(const Fields fields, check_fields(item, kMessage, where));
    const std::string_view role = *fields.text("role");
    const auto known = {"user", "assistant", "system", "developer"};
    if (std::ranges::find(known, role) == std::end(known)) {
      return refuse(bad_value(where + ".role",
                              "must be \"user\", \"assistant\", \"system\" or \"developer\""));
    }
    CYB_API_ASSIGN(ChatValue content, read_content(*fields.find("content"), where + ".content"));
    if (role != "assistant") {
      close();
      messages_.push_back(plain_message(role, std::move(content)));
      return {};
    }
    if (!open_ || find("content") != nullptr || find("tool_calls") != nullptr) open();
    put("content", std::move(content));
    return {};
  }

  ApiResult<void> call(const ChatValue& item, const std::string& where) {
    CYB_API_ASSIGN(const Fields fields, check_fields(item, kCall, where));
    ChatValue one = ChatValue::object(
        {{"id", *fields.find("call_id")},
         {"type", ChatValue::of("function")},
         {"function", ChatValue::object({{"name", *fields.find("name")},
                                         {"arguments", *fields.find("arguments")}})}});
    if (auto checked = read_tool_call(one, where); !checked) {
      return refuse(without_function(std::move(checked).error()));
    }
    if (!open_) open();
    if (find("tool_calls") == nullptr) put("tool_calls", ChatValue::list());
    const auto calls = std::ranges::find(messages_.back().members, "tool_calls",
                                         &std::pair<std::string, ChatValue>::first);
    calls->second.items.push_back(std::move(one));
    return {};
  }

  ApiResult<void> output(const ChatValue& item, const std::string& where) {
    CYB_API_ASSIGN(const Fields fields, check_fields(item, kOutput, where));
    CYB_API_ASSIGN(ChatValue content, read_content(*fields.find("output"), where + ".output"));
    close();
    messages_.push_back(plain_message("tool", std::move(content)));
    put("tool_call_id", *fields.find("call_id"));
    return {};
  }

  ApiResult<void> reasoning(const ChatValue& item, const std::string& where) {
    CYB_API_ASSIGN(const Fields fields, check_fields(item, kReasoning, where));
    const ChatValue* content = fields.find("content");
    if (content == nullptr || content->items.empty()) return {};
    std::string text;
    for (std::size_t i = 0; i < content->items.size(); ++i) {
      CYB_API_ASSIGN(const ChatValue part,
                     read_part(content->items[i], fmt::format("{}.content[{}]", where, i), true));
      text += (i == 0 ? "" : "\n") + std::string(*Fields(part).text("text"));
    }
    open();
    put("reasoning_content", ChatValue::of(std::string_view(text)));
    return {};
  }

  std::vector<ChatValue>& messages_;
  bool open_ = false;  // the last message is an assistant's, and what comes next may belong to it
};

ApiResult<ChatValue> read_named(const ChatValue& choice, const std::string& where) {
  if (choice.kind != Kind::kObject) return refuse(bad_value(where, "must be an object"));
  if (const std::string type = type_of(choice); type != "function") {
    return refuse(unsupported(
        where, fmt::format("{}: the server runs no tools itself; functions alone can be chosen",
                           json_quote(type))));
  }
  CYB_API_ASSIGN(const Fields fields, check_fields(choice, kNamed, where));
  return ChatValue::object({{"type", ChatValue::of("function")},
                            {"function", ChatValue::object({{"name", *fields.find("name")}})}});
}

}  // namespace

std::span<const Field> responses_message_fields() {
  return kMessage;
}

std::span<const Field> responses_call_fields() {
  return kCall;
}

std::span<const Field> responses_output_fields() {
  return kOutput;
}

std::span<const Field> responses_reasoning_fields() {
  return kReasoning;
}

std::span<const Field> responses_part_fields() {
  return kPart;
}

std::span<const Field> responses_tool_fields() {
  return kTool;
}

ApiResult<void> read_responses_items(const ChatValue& input, std::vector<ChatValue>& messages) {
  Conversation conversation(messages);
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    CYB_API_TRY(conversation.add(input.items[i], fmt::format("input[{}]", i)));
  }
  conversation.close();
  return {};
}

ApiResult<ChatValue> read_responses_tools(const ChatValue& tools) {
  ChatValue out = ChatValue::list();
  for (std::size_t i = 0; i < tools.items.size(); ++i) {
    const ChatValue& tool = tools.items[i];
    const std::string at = fmt::format("tools[{}]", i);
    if (tool.kind != Kind::kObject) return refuse(bad_value(at, "must be an object"));
    if (const std::string type = type_of(tool); !type.empty() && type != "function") {
      return refuse(unsupported(
          at + ".type",
          fmt::format("{}: the server runs no tools itself; only \"function\"", json_quote(type))));
    }
    CYB_API_TRY(check_fields(tool, kTool, at));
    ChatValue function = ChatValue::object();
    for (const auto& member : tool.members) {
      if (member.first != "type" && member.second.kind != Kind::kNull) {
        function.members.push_back(member);
      }
    }
    out.items.push_back(ChatValue::object(
        {{"type", ChatValue::of("function")}, {"function", std::move(function)}}));
  }
  return out;
}

ApiResult<ChatValue> read_responses_choice(const ChatValue& choice) {
  if (choice.kind == Kind::kString) return choice;
  if (choice.kind != Kind::kObject || type_of(choice) != "allowed_tools") {
    return read_named(choice, "tool_choice");
  }
  CYB_API_ASSIGN(const Fields fields, check_fields(choice, kAllowed, "tool_choice"));
  ChatValue tools = ChatValue::list();
  for (std::size_t i = 0; i < fields.find("tools")->items.size(); ++i) {
    CYB_API_ASSIGN(ChatValue named, read_named(fields.find("tools")->items[i],
                                               fmt::format("tool_choice.tools[{}]", i)));
    tools.items.push_back(std::move(named));
  }
  return ChatValue::object({{"type", ChatValue::of("allowed_tools")},
                            {"allowed_tools", ChatValue::object({{"mode", *fields.find("mode")},
                                                                 {"tools", std::move(tools)}})}});
}

ApiError without_function(ApiError error) {
  static constexpr std::string_view kStep = ".function.";
  const std::size_t at = error.param.find(kStep);
  if (at == std::string::npos) return error;
  std::string name = error.param;
  name.replace(at, kStep.size(), ".");
  return renamed(error, error.param, name);
}

}  // namespace cyb::server
