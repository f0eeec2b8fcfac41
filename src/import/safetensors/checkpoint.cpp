// Sharded checkpoints: model.safetensors.index.json maps each tensor to the plain name of a file in
// the same folder.
#include "import/safetensors/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/json_text.hpp"
#include "import/json_strict.hpp"
#include "import/names.hpp"

namespace cyb::safetensors {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor -> file

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

/// True for "<prefix>-00001-of-00003.safetensors".
bool is_shard_name(std::string_view name) {
  constexpr std::string_view kPattern = "-#####-of-#####.safetensors";
  if (name.size() <= kPattern.size()) return false;
  const std::string_view tail = name.substr(name.size() - kPattern.size());
  for (std::size_t i = 0; i < tail.size(); ++i) {
    const bool good =
        kPattern[i] == '#' ? (tail[i] >= '0' && tail[i] <= '9') : tail[i] == kPattern[i];
    if (!good) return false;
  }
  return true;
}

Result<void> check_file_name(const std::string& name) {
  const bool plain = !name_problem(name) && name.find('/') == std::string::npos &&
                     name.find('\\') == std::string::npos && name.find(':') == std::string::npos &&
                     name != "." && name != "..";
  if (plain) return {};
  return fail(
      json_error(kIndex, fmt::format("{} is not the plain name of a file", json_quote(name))));
}

Result<WeightMap> read_index(const std::string& folder) {
  CYB_ASSIGN(const nlohmann::json index, read_json_file(folder + "/" + std::string(kIndex)));
  const auto at = index.find("weight_map");
  if (!index.is_object() || at == index.end() || !at->is_object() || at->empty()) {
    return fail(json_error(kIndex, "weight_map is missing or no object of names"));
  }
  WeightMap out;
  for (const auto& [tensor, file] : at->items()) {
    if (!file.is_string())
      return fail(json_error(kIndex, fmt::format("{} has no file name", json_quote(tensor))));
    CYB_TRY(check_file_name(file.get_ref<const std::string&>()));
    out.emplace(tensor, file.get_ref<const std::string&>());
  }
  return out;
}

std::vector<std::string> files_of(const WeightMap& map) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  return {names.begin(), names.end()};
}

/// Shards that lie in the folder but are not in the index belong to another checkpoint, or the
/// index is wrong.
Result<void> check_extra_shards(const std::string& folder, const std::vector<std::string>& files) {
  std::error_code code;
  std::vector<std::string> extra;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    std::string name = it->path().filename().string();
    if (!is_shard_name(name) && name != kSingle) continue;
    if (!std::ranges::binary_search(files, name)) extra.push_back(std::move(name));
  }
  if (code) return fail(io_error(folder, "list", code.message()));
  if (extra.empty()) return {};
  return fail(json_error(kIndex, fmt::format("{} lies beside it and is not in it",
                                             json_quote(*std::ranges::min_element(extra)))));
}

Result<Shard> open_shard(const std::string& path) {
  Shard shard;
  CYB_ASSIGN(shard.file, MappedFile::open(path));
  auto header = SafetensorsFile::parse(shard.file->bytes());
  if (!header) return fail(std::move(header).error().in(path));
  shard.header = std::move(*header);
  return shard;
}

/// Each tensor of the index is in its file and nowhere else; no file has a tensor that the index
/// lacks.
Result<void> check_against_index(const std::vector<Shard>& shards,
                                 const std::vector<std::string>& files, const WeightMap& map) {
  std::set<std::string_view> found;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const TensorInfo& tensor : shards[i].header.tensors) {
      const auto at = map.find(tensor.name);
      if (at == map.end() || at->second != files[i]) {
        const std::string said = at == map.end() ? std::string("nothing") : json_quote(at->second);
        return fail(
            json_error(kIndex, fmt::format("tensor {} is in {}, the index says {}",
                                           json_quote(tensor.name), json_quote(files[i]), said)));
      }
      found.insert(tensor.name);
    }
  }
  for (const auto& [tensor, file] : map) {
    if (found.contains(tensor)) continue;
    return fail(json_error(
        kIndex, fmt::format("tensor {} is not in {}", json_quote(tensor), json_quote(file))));
  }
  return {};
}

Result<std::vector<Shard>> open_sharded(const std::string& folder) {
  CYB_ASSIGN(const WeightMap map, read_index(folder));
  const std::vector<std::string> files = files_of(map);
  for (const std::string& file : files) {
    if (!exists(folder + "/" + file))
      return fail(io_error(folder + "/" + file, "open", "this shard of the checkpoint is missing"));
  }
  CYB_TRY(check_extra_shards(folder, files));
  std::vector<Shard> shards;
  for (const std::string& file : files) {
    CYB_ASSIGN(Shard shard, open_shard(folder + "/" + file));
    shards.push_back(std::move(shard));
  }
  CYB_TRY(check_against_index(shards, files, map));
  return shards;
}

Result<std::string> single_file(const std::string& folder, const std::string& file) {
  if (!file.empty() && is_shard_name(file)) {
    return fail(
        invalid_input(fmt::format("{} is one shard of a checkpoint; name its folder", file)));
  }
  std::string path = folder + "/" + (file.empty() ? std::string(kSingle) : file);
  if (exists(path)) return path;
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (exists(folder + "/" + pickle)) {
      return fail(io_error(
          folder, "import",
          fmt::format("{} is a pickle file, which is never read; convert to safetensors", pickle)));
    }
  }
  return fail(io_error(path, "open", fmt::format("no such file, and no {} beside it", kIndex)));
}

bool is_sharded(const std::string& folder, const std::string& file) {
  return file.empty() && exists(folder + "/" + std::string(kIndex));
}

}  // namespace

Result<std::vector<Shard>> open_checkpoint(const std::string& folder, const std::string& file) {
  if (is_sharded(folder, file)) return open_sharded(folder);
  CYB_ASSIGN(const std::string path, single_file(folder, file));
  std::vector<Shard> shards;
  CYB_ASSIGN(Shard shard, open_shard(path));
  shards.push_back(std::move(shard));
  return shards;
}

Result<std::vector<std::string>> weight_files(const std::string& folder, const std::string& file) {
  std::vector<std::string> out;
  if (is_sharded(folder, file)) {
    CYB_ASSIGN(const WeightMap map, read_index(folder));
    out.push_back(folder + "/" + std::string(kIndex));
    for (const std::string& name : files_of(map)) out.push_back(folder + "/" + name);
    return out;
  }
  CYB_ASSIGN(std::string path, single_file(folder, file));
  out.push_back(std::move(path));
  return out;
}

}  // namespace cyb::safetensors
