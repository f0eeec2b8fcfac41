// Tools for models whose templates know none: functions, calls and results become text of ordinary
// messages.
#pragma once

#include <span>
#include <vector>

#include "text/template/chat_template.hpp"
#include "text/tools/tool_format.hpp"

namespace cyb {

/// The template of a model with this format does not show tools, calls and results itself.
bool needs_tool_prompt(const ToolFormat& format);

/// `tools`: as a template would see them ({"type": "function", "function": {...}}). The functions
/// are described in the first message; calls of assistants become content in the format's own way;
/// results become messages of the user.
void write_tools_as_text(const ToolFormat& format, std::span<const ChatValue> tools,
                         std::vector<ChatValue>& messages);

}  // namespace cyb
