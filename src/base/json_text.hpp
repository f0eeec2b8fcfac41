// JSON text output: quoting only. Parsing and documents use nlohmann-json where they are needed.
#pragma once

#include <string>
#include <string_view>

namespace cyb {

/// `text` as a JSON string literal with quotes. Bytes that are not valid UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

/// Offset of the first whole number outside of strings that does not fit 64 bits (INT64_MIN to
/// UINT64_MAX), npos where there is none: readers of JSON make it a number with a fraction. `text`
/// need not be valid.
std::size_t find_wide_integer(std::string_view text) noexcept;

}  // namespace cyb
