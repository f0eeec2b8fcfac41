// JSON text output: quoting only. Parsing and documents use nlohmann-json where they are needed.
#pragma once

#include <string>
#include <string_view>

namespace cyb {

/// `text` as a JSON string literal with quotes. Bytes that are not valid UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace cyb
