// A link whose target is missing counts as there: what it names would be made.
#include "cli/output_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/output.hpp"
#include "cli/usage.hpp"
#include "model/store_index.hpp"

namespace cyb::cli {

namespace {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  std::error_code code;
  if (fs::equivalent(a, b, code)) return true;
  const fs::path one = fs::weakly_canonical(a, code), other = fs::weakly_canonical(b, code);
  return !code && one == other;
}

}  // namespace

Result<void> check_model_name(const std::string& name) {
  if (name.empty() || is_store_name(name)) return {};  // never changed into another one
  return fail(usage_error(
      fmt::format("--name: \"{}\" is not 1 to 128 of A-Z a-z 0-9 . _ -, not starting with . or -",
                  terminal_safe(name))));
}

Result<void> check_apart(std::span<const std::string> outputs,
                         std::span<const std::string> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const std::string& input : inputs) {
      if (outputs[i] != "-" && same_file(outputs[i], input)) {
        return fail(usage_error(
            fmt::format("\"{}\" is read by this command: choose another file", outputs[i])));
      }
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (same_file(outputs[i], outputs[k]))
        return fail(usage_error(fmt::format("two results would be one file: \"{}\"", outputs[i])));
    }
  }
  return {};
}

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
