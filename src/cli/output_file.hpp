// Files that a command writes where the user says: nothing that exists is overwritten unasked.
#pragma once

#include <string>

#include "base/result.hpp"

namespace cyb::cli {

/// Errors: Usage where `path` exists and `force` is false, and for "-", which is no file.
Result<void> check_output_file(const std::string& path, bool force);

}  // namespace cyb::cli
