// White space as Python has it.
#pragma once

#include <cstddef>
#include <string_view>

namespace cyb::tmpl {

/// White space as Python's str.strip() and \s see it (both agree on these characters but for
/// U+001C..U+001F).
bool is_python_space(char32_t c) noexcept;
/// `text` without white space at its end / start: offsets.
std::size_t rstrip_end(std::string_view text) noexcept;
std::size_t lstrip_begin(std::string_view text, std::size_t from = 0) noexcept;

}  // namespace cyb::tmpl
