// The CYB_ variables: defaults of options and places of folders. A bad value is an error that names
// the variable, never ignored.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace cyb::cli {

inline constexpr std::uint64_t kMaxThreads = 1024;

/// Value of a variable; `fallback` where it is not set or empty.
std::string environment(const char* name, const char* fallback = "");

/// All variables that the program reads. Errors, with the variable in front: Usage, D7, Io.
Result<void> check_environment();

}  // namespace cyb::cli
