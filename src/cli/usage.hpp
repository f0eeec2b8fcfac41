// Mistakes on the command line: one kind of error, and the name that was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cyb::cli {

/// Code of every mistake on the command line or in the environment; kind InvalidInput, exit code 1.
inline constexpr std::string_view kUsageCode = "Usage";

Error usage_error(std::string_view what);

/// The one of `names` that `given` probably means (a few wrong letters, a shortened or lengthened
/// name); "" where none is close.
std::string closest_name(std::string_view given, std::span<const std::string> names);

}  // namespace cyb::cli
