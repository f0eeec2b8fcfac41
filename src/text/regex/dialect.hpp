// The regular expressions of tokenizer files, in Oniguruma's dialect (Ruby syntax, UTF-8),
// rewritten for PCRE2. What has another meaning there and is not rewritten is refused by name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::text {

/// Longest pattern that is read.
inline constexpr std::size_t kMaxPatternBytes = 65536;

/// `pattern` must be valid UTF-8. Errors: NotBuilt naming the construct.
Result<std::string> pcre_pattern(std::string_view pattern);

}  // namespace cyb::text
