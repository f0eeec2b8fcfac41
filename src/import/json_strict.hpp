// JSON documents of a checkpoint, read strictly: bounded depth, duplicate keys refused, errors that
// name the file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb {

/// Errors: Format with code "JSON", `<what>: ...` with the byte, the depth limit or the duplicate
/// key.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what);

/// Reads and parses a file of at most kMaxHeaderBytes.
Result<nlohmann::json> read_json_file(const std::string& path);

/// An Error of kind Format with code "JSON".
Error json_error(std::string_view what, std::string_view problem);

}  // namespace cyb
