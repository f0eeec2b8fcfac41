// What the Responses API says in its own way of messages and tools, as chat says it: items of
// `input`, `tools`, `tool_choice`.
#pragma once

#include <span>
#include <vector>

#include "server/fields.hpp"

namespace cyb::server {

/// Items of `input`: a message, a call, its result, reasoning; and a part of a content.
std::span<const Field> responses_message_fields();
std::span<const Field> responses_call_fields();
std::span<const Field> responses_output_fields();
std::span<const Field> responses_reasoning_fields();
std::span<const Field> responses_part_fields();
std::span<const Field> responses_tool_fields();

/// Appends chat's messages. Reasoning, a message of the assistant and calls that stand one after
/// another are one of them. Errors: 400 naming the item and its member.
ApiResult<void> read_responses_items(const ChatValue& input, std::vector<ChatValue>& messages);
/// Errors: 400 naming the tool and its member; tools that the server would have to run are named.
ApiResult<ChatValue> read_responses_tools(const ChatValue& tools);
ApiResult<ChatValue> read_responses_choice(const ChatValue& choice);
/// Chat's names of members of functions and calls ("tools[0].function.name") as this API has them.
ApiError without_function(ApiError error);

}  // namespace cyb::server
