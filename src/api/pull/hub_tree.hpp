// What a hub says of a repository, read strictly: its commit, its files, its checkpoint's shards.
// All of it is hostile: names stay inside a folder, sizes and counts are bounded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::api {

struct HubFile {
  std::string path;  // relative, '/' between names
  std::uint64_t size = 0;
  std::string sha256, git_blob;  // lower-case hex, "": not stated; one of them is there
};

/// Relative; no empty name, ".", "..", backslash, control character or bad UTF-8; at most 1024
/// bytes, 255 a name.
bool is_safe_path(std::string_view path);

/// Appends the files of one answer of /tree. Errors: JSON, N06 with the entry.
Result<void> parse_hub_tree(std::string_view text, std::vector<HubFile>& files);
/// "sha" of an answer of /revision. Errors: JSON, N06.
Result<std::string> parse_hub_commit(std::string_view text);
/// Plain names of the files of a model.safetensors.index.json, sorted. Errors: JSON, N06.
Result<std::vector<std::string>> parse_shard_names(std::string_view text);
/// The address of a Link header's rel="next"; "" where there is none.
std::string next_link(std::string_view header);

}  // namespace cyb::api
