// The words are what models without tools in their templates follow best: a form, and the
// functions.
#include "text/tools/tool_prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/template/chat_json.hpp"

namespace cyb {
namespace {

ChatValue* find(ChatValue& object, std::string_view name) {
  const auto at =
      std::ranges::find(object.members, name, &std::pair<std::string, ChatValue>::first);
  return at == object.members.end() ? nullptr : &at->second;
}

std::string text_of(ChatValue& object, std::string_view name) {
  const ChatValue* value = find(object, name);
  return value == nullptr ? std::string() : value->text;
}

void set(ChatValue& object, std::string_view name, std::string_view text) {
  if (ChatValue* value = find(object, name)) {
    *value = ChatValue::of(text);
  } else {
    object.members.emplace_back(name, ChatValue::of(text));
  }
}

std::string call_text(const ToolFormat& format, std::string_view name, std::string_view arguments) {
  const ToolLayout& layout = format.layout;
  return fmt::format("{}{}{}{}{}", layout.before, name, layout.middle, arguments, layout.after);
}

std::string description(const ToolFormat& format, std::span<const ChatValue> tools) {
  std::string out = fmt::format(
      "You can call functions. To call one, answer with nothing but a call in this form:\n{}\n"
      "Its result comes with the next message. Where no function helps, answer in words. The "
      "functions:",
      call_text(format, "the function's name", "{the arguments as JSON}"));
  for (ChatValue tool : tools) {
    const ChatValue* function = find(tool, "function");
    out += '\n' + chat_json_text(function == nullptr ? tool : *function);
  }
  return out;
}

/// Calls after the content.
void write_calls(const ToolFormat& format, ChatValue& message) {
  ChatValue* calls = find(message, "tool_calls");
  if (calls == nullptr) return;
  std::string text = text_of(message, "content");
  for (ChatValue& call : calls->items) {
    ChatValue* function = find(call, "function");
    if (function == nullptr) continue;
    ChatValue* arguments = find(*function, "arguments");
    if (!text.empty()) text += '\n';
    text += call_text(format, text_of(*function, "name"),
                      arguments == nullptr ? "{}" : chat_json_text(*arguments));
  }
  std::erase_if(message.members, [](const auto& member) { return member.first == "tool_calls"; });
  set(message, "content", text);
}

}  // namespace

bool needs_tool_prompt(const ToolFormat& format) {
  return format.name == "generic" || format.name == "gemma";
}

void write_tools_as_text(const ToolFormat& format, std::span<const ChatValue> tools,
                         std::vector<ChatValue>& messages) {
  const bool fenced = format.name == "gemma";
  std::vector<ChatValue> out;
  bool results = false;  // the last message is one of results
  for (ChatValue& message : messages) {
    if (text_of(message, "role") != "tool") {
      results = false;
      write_calls(format, message);
      out.push_back(std::move(message));
      continue;
    }
    const std::string text = fmt::format(
        fmt::runtime(fenced ? "```tool_output\n{}\n```" : "<tool_response>\n{}\n</tool_response>"),
        text_of(message, "content"));
    if (results) {
      set(out.back(), "content", text_of(out.back(), "content") + "\n" + text);
    } else {
      out.push_back(ChatValue::object(
          {{"role", ChatValue::of("user")}, {"content", ChatValue::of(std::string_view(text))}}));
    }
    results = true;
  }
  messages = std::move(out);
  if (tools.empty() || messages.empty()) return;
  const std::string text = description(format, tools);
  const std::string_view role = fenced ? "user" : "system";
  const auto first = std::ranges::find_if(
      messages, [&](ChatValue& message) { return text_of(message, "role") == role; });
  if (first != messages.end() && (fenced || first == messages.begin())) {
    const std::string own = text_of(*first, "content");
    set(*first, "content", fenced ? text + "\n\n" + own : own + "\n\n" + text);
    return;
  }
  messages.insert(messages.begin(),
                  ChatValue::object({{"role", ChatValue::of(role)},
                                     {"content", ChatValue::of(std::string_view(text))}}));
}

}  // namespace cyb
