// JSON text as a value that templates see: what a caller sends as messages, tools or variables.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "text/template/chat_template.hpp"

namespace cyb {

/// Deeper nesting is refused: a template could not walk it.
inline constexpr int kMaxChatJsonDepth = 64;

/// Members keep their order; of equal keys the last wins, as in Python. `what` names the text in
/// errors. Errors: InvalidInput `<what> is not JSON: ...` with the byte offset, nesting, integers
/// that do not fit 64 bits.
Result<ChatValue> parse_chat_json(std::string_view text, std::string_view what);

/// A value that parse_chat_json() made, as compact JSON. Bytes that are not valid UTF-8 become
/// U+FFFD.
std::string chat_json_text(const ChatValue& value);

}  // namespace cyb
