// What a hub says of a repository: every file that is taken stays in its folder, has a digest and a
// bounded size; whatever is selected of them is among them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "api/pull/hub_tree.hpp"
#include "api/pull/registry.hpp"
#include "api/pull/selection.hpp"
#include "base/transfer_limits.hpp"
#include "net/url.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<cyb::api::HubFile> files;
  const auto tree = cyb::api::parse_hub_tree(text, files);
  for (const cyb::api::HubFile& file : files) {
    if (!cyb::api::is_safe_path(file.path) || file.path.find("..") == 0) std::abort();
    if (file.sha256.empty() == file.git_blob.empty()) std::abort();
    if (file.size > cyb::kMaxDownloadBytes) std::abort();
  }
  for (const char* wanted : {"", "q4", "*.gguf", "model.safetensors"}) {
    const auto selected = cyb::api::select_files(files, wanted);
    if (!selected) continue;
    for (const cyb::api::HubFile& file : selected->files)
      if (std::ranges::find(files, file.path, &cyb::api::HubFile::path) == files.end())
        std::abort();
  }
  (void)cyb::api::parse_hub_commit(text);
  for (const auto& file :
       cyb::api::parse_registry(text).value_or(std::vector<cyb::api::RegistryFile>()))
    if (file.name.empty() || file.size > cyb::kMaxDownloadBytes ||
        cyb::parse_digest(file.model_id) == std::nullopt)
      std::abort();
  (void)cyb::api::parse_pull_source(text);
  const auto shards = cyb::api::parse_shard_names(text);
  for (const std::string& name : shards.value_or(std::vector<std::string>()))
    if (!cyb::api::is_safe_path(name) || name.find('/') != std::string::npos) std::abort();
  const std::string next = cyb::api::next_link(text);
  const auto base = cyb::net::parse_url("https://example.org/a?b");
  if (base && !next.empty()) {
    const auto url = cyb::net::resolve_url(*base, next);
    if (url && !url->is_secure()) std::abort();
  }
  return 0;
}
