#include "import/hf/folder_files.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "import/json_strict.hpp"

namespace cyb::hf {

bool file_exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

std::optional<std::int64_t> id_of_key(std::string_view key) noexcept {
  if (key.empty() || key.size() > 9) return std::nullopt;
  std::int64_t id = 0;
  for (const char digit : key) {
    if (digit < '0' || digit > '9') return std::nullopt;
    id = id * 10 + (digit - '0');
  }
  return id;
}

Result<nlohmann::json> optional_object(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  if (!file_exists(path)) return nlohmann::json::object();
  CYB_ASSIGN(nlohmann::json out, read_json_file(path));
  if (!out.is_object()) return fail(json_error(name, "is not an object"));
  return out;
}

}  // namespace cyb::hf
