// Members that are not known are passed over: a hub adds some now and then.
#include "api/pull/hub_tree.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.hpp"
#include "base/transfer_limits.hpp"
#include "base/utf8.hpp"
#include "import/json_strict.hpp"
#include "net/net_error.hpp"
#include "net/sha.hpp"

namespace cyb::api {
namespace {

using Json = nlohmann::json;

Error bad(std::string_view what) {
  return net::net_error(net::kMetadata, fmt::format("the hub's answer: {}", what));
}

const std::string* text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get_ptr<const std::string*>() : nullptr;
}

Result<std::uint64_t> size_of(const Json& object, std::string_view path) {
  const auto at = object.find("size");
  if (at != object.end() && at->is_number_unsigned() &&
      at->get<std::uint64_t>() <= kMaxDownloadBytes)
    return at->get<std::uint64_t>();
  return fail(bad(
      fmt::format("{}: its size is no number from 0 to {}", json_quote(path), kMaxDownloadBytes)));
}

Result<HubFile> read_file(const Json& entry, const std::string& path) {
  HubFile file{.path = path, .size = 0, .sha256 = {}, .git_blob = {}};
  const auto lfs = entry.find("lfs");
  const bool is_lfs = lfs != entry.end() && lfs->is_object();
  const std::string* oid = text_of(is_lfs ? *lfs : entry, "oid");
  std::string_view digest = oid == nullptr ? std::string_view() : std::string_view(*oid);
  if (is_lfs && digest.starts_with("sha256:")) digest.remove_prefix(7);
  if (!net::is_hex(digest, is_lfs ? 64 : 40))
    return fail(bad(fmt::format("{} has no digest", json_quote(path))));
  (is_lfs ? file.sha256 : file.git_blob) = digest;
  CYB_ASSIGN(file.size, size_of(is_lfs ? *lfs : entry, path));
  return file;
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > 1024 || utf8_find_invalid(path) != std::string_view::npos)
    return false;
  for (const char c : path)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\') return false;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    if (end == path.size()) return true;
    at = end + 1;
  }
}

Result<void> parse_hub_tree(std::string_view text, std::vector<HubFile>& files) {
  CYB_ASSIGN(const Json tree, parse_json(text, "the hub's list of files"));
  if (!tree.is_array()) return fail(bad("the list of files is no array"));
  std::set<std::string, std::less<>> paths;
  for (const HubFile& file : files) paths.insert(file.path);
  for (const Json& entry : tree) {
    const std::string* type = entry.is_object() ? text_of(entry, "type") : nullptr;
    const std::string* path = type == nullptr ? nullptr : text_of(entry, "path");
    if (path == nullptr) return fail(bad("an entry without type and path"));
    if (!is_safe_path(*path))
      return fail(bad(
          fmt::format("{} is no name of a file in a folder", json_quote(path->substr(0, 200)))));
    if (*type != "file") continue;
    if (files.size() >= kMaxHubFiles)
      return fail(bad(fmt::format("more than {} files", kMaxHubFiles)));
    if (!paths.insert(*path).second)
      return fail(bad(fmt::format("{} is there twice", json_quote(*path))));
    CYB_ASSIGN(HubFile file, read_file(entry, *path));
    files.push_back(std::move(file));
  }
  return {};
}

Result<std::string> parse_hub_commit(std::string_view text) {
  CYB_ASSIGN(const Json answer, parse_json(text, "the hub's answer for the revision"));
  const std::string* sha = answer.is_object() ? text_of(answer, "sha") : nullptr;
  if (sha == nullptr || !net::is_hex(*sha, 40)) return fail(bad("the revision has no commit"));
  return *sha;
}

Result<std::vector<std::string>> parse_shard_names(std::string_view text) {
  CYB_ASSIGN(const Json index, parse_json(text, "model.safetensors.index.json"));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object())
    return fail(bad("model.safetensors.index.json has no weight_map"));
  std::set<std::string> names;
  for (const Json& name : *map) {
    if (!name.is_string() || !is_safe_path(name.get_ref<const std::string&>()) ||
        name.get_ref<const std::string&>().find('/') != std::string::npos)
      return fail(bad("model.safetensors.index.json names a file outside of its folder"));
    names.insert(name.get<std::string>());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::string next_link(std::string_view header) {
  const std::size_t open = header.find('<'), close = header.find('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  if (header.find("rel=\"next\"", close) == std::string_view::npos) return {};
  return std::string(header.substr(open + 1, close - open - 1));
}

}  // namespace cyb::api
