// Names are checked here; whether this machine can do what they ask for is told when it is tried.
#include "cli/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "backends/backend.hpp"
#include "base/file.hpp"
#include "cli/isa_names.hpp"
#include "cli/options.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::array<std::string_view, 4> kPaths = {"auto", "curated", "graph", "nox"};

Result<void> check_name(const char* variable, const std::vector<std::string_view>& names,
                        std::string_view what, bool dispatch) {
  const std::string value = environment(variable);
  if (value.empty() || std::ranges::find(names, value) != names.end()) return {};
  const std::string text = fmt::format("{}: unknown {} \"{}\"; choose one of {}", variable, what,
                                       value, fmt::join(names, ", "));
  if (dispatch) return fail(Error(ErrorKind::kDispatch, "D7", text));
  return fail(usage_error(text));
}

/// A folder that is in the way as a file. One that is not there yet is made when it is needed.
Result<void> check_folder(const char* variable, const std::string& path) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  const bool blocked = code == std::errc::not_a_directory ||
                       (std::filesystem::exists(status) && !std::filesystem::is_directory(status));
  if (!blocked) return {};
  Error error = io_errno(path, "use as a folder", ENOTDIR);
  if (environment(variable).empty()) return fail(std::move(error));
  return fail(std::move(error).in(variable));
}

Result<void> check_threads() {
  const std::string text = environment("CYB_THREADS");
  if (text.empty()) return {};
  const auto value = parse_integer(text);
  if (value && *value >= 1 && *value <= kMaxThreads) return {};
  return fail(usage_error(
      fmt::format("CYB_THREADS: \"{}\" is not a whole number from 1 to {}", text, kMaxThreads)));
}

}  // namespace

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

Result<void> check_environment() {
  std::vector<std::string_view> backends = backend_names();
  backends.insert(backends.begin(), "auto");
  CYB_TRY(check_folder("CYB_DATA", data_folder()));
  CYB_TRY(check_folder("CYB_CACHE", cache_folder()));
  CYB_TRY(check_threads());
  CYB_TRY(check_name("CYB_PATH", {kPaths.begin(), kPaths.end()}, "path", true));
  CYB_TRY(check_name("CYB_BACKEND", backends, "backend", true));
  return check_name("CYB_ISA", {kIsaNames.begin(), kIsaNames.end()}, "instruction set", false);
}

}  // namespace cyb::cli
