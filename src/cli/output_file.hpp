// Files that a command writes where the user says: nothing that exists is overwritten unasked.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"

namespace cyb::cli {

/// Errors: Usage where `path` exists and `force` is false, and for "-", which is no file.
Result<void> check_output_file(const std::string& path, bool force);

/// Errors: Usage for a --name that no model in the store can have; "" is none.
Result<void> check_model_name(const std::string& name);

/// What `--force` does not allow either. Errors: Usage where an output is one of the files that the
/// command reads, or two outputs are one file; "-" (standard output) may stand once.
Result<void> check_apart(std::span<const std::string> outputs, std::span<const std::string> inputs);

}  // namespace cyb::cli
