// Text that comes from outside is UTF-8, or refused where it enters: later it would be blamed on a
// template or tokenizer.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace cyb::api {

/// Errors: InvalidInput naming `what`, the first bad byte and its offset.
Result<void> check_utf8(std::string_view text, std::string_view what);

}  // namespace cyb::api
