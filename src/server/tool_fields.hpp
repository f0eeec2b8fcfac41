// tools, tool_choice, parallel_tool_calls, tool_calls and results in messages, and what restricts
// an answer's form: response_format, json_schema, grammar, regex, lark.
#pragma once

#include <string>
#include <vector>

#include "server/completion_request.hpp"
#include "text/tools/tool_grammar.hpp"

namespace cyb::server {

enum class ToolChoice : std::uint8_t { kNone, kAuto, kRequired };

struct ToolRequest {
  ToolChoice choice = ToolChoice::kNone;
  std::vector<ChatValue> tools{};         // as the template sees them
  std::vector<ToolFunction> functions{};  // that may be called, with schemas
  bool strict = false;                    // arguments must fit the schemas
  bool several = true;                    // more than one call
};

/// Errors: 400 naming the tool and its member.
ApiResult<ToolRequest> read_tools(const Fields& fields);

/// A checked call of an assistant, with its arguments as an object; `at` names it in errors.
ApiResult<ChatValue> read_tool_call(const ChatValue& one, const std::string& at);
/// A checked member of a message: `tool_calls` of an assistant.
ApiResult<ChatValue> read_tool_calls(const ChatValue& calls, const std::string& where);
/// Functions, calls and results as the model's template takes them: arguments as objects or as
/// texts; all of it as text of other messages where the template knows no tools.
ApiResult<void> put_tools(const Engine& engine, const ToolRequest& tools, ChatInput& input);

/// The whole of what a chat's answer is: its format, its marks of reasoning, its grammar. `out` has
/// its prompt. Errors: 400 naming the field, with the path in its schema.
ApiResult<void> shape_chat_answer(const Fields& fields, const Served& served,
                                  const ToolRequest& tools, CompletionRequest& out);
/// The same of a completion: a grammar or none.
ApiResult<void> shape_completion(const Fields& fields, const Served& served,
                                 CompletionRequest& out);
/// The format of the model's calls. Errors: 400 `unsupported_parameter` where it is not known.
ApiResult<const ToolFormat*> need_tool_format(const Engine& engine);

}  // namespace cyb::server
