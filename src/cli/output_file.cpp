// A link whose target is missing counts as there: what it names would be made.
#include "cli/output_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/usage.hpp"

namespace cyb::cli {

Result<void> check_output_file(const std::string& path, bool force) {
  if (path == "-") return fail(usage_error("-o - : standard output is not supported, name a file"));
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, code);
  if (force || !std::filesystem::exists(status)) return {};
  if (std::filesystem::is_directory(path, code)) {
    return fail(usage_error(fmt::format("\"{}\" is a folder: name a file", path)));
  }
  return fail(usage_error(fmt::format("\"{}\" exists: --force overwrites it", path)));
}

}  // namespace cyb::cli
