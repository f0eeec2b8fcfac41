// PanelFile: packed weights of one model for one backend layout, in the cache folder, mapped. Made
// on the first load, checked on every other; a file that does not fit the model file and layout
// exactly is made again, never trusted. A cache that cannot be written is no error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/model.hpp"
#include "paths/forward.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

inline constexpr std::uint64_t kPanelAlignment = 4096;

/// One packed weight inside the file.
struct PanelEntry {
  std::string key;  // WeightTable::pack_key
  std::uint64_t offset = 0, size = 0;
  Digest hash{};
};

/// What a panel file belongs to. The stated model_id only names the file; the rest ties it to one
/// file on this machine, so that a model that claims another's id can neither read nor plant its
/// panels.
struct PanelOwner {
  std::string model_id, layout_id;
  std::uint64_t inode = 0, size_bytes = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  bool operator==(const PanelOwner&) const = default;
};

/// Bytes of the header page(s), padded to whole pages; hashes of entries as given.
std::vector<std::byte> encode_panel_header(const PanelOwner& owner,
                                           std::span<const PanelEntry> entries,
                                           std::uint64_t file_bytes);
struct PanelHeader {
  PanelOwner owner;
  std::vector<PanelEntry> entries;
};
/// `file`: the whole file. Errors: Format "panels: ..." for any damage of header, index or length.
Result<PanelHeader> decode_panel_header(std::span<const std::byte> file);

struct PackCacheOptions {
  std::string folder{};         // "": cache_folder()/panels
  std::uint64_t cap_bytes = 0;  // of the folder; 0: kMaxPanelCacheBytes
  bool verify = false;          // check the hash of each panel
  std::function<void(std::uint64_t done, std::uint64_t total, std::string_view name)> progress{};
  std::stop_token stop{};
  // Nothing is read, packed or written: the cache has address space for whatever is asked of it.
  bool measure = false;
};

struct PackCacheResult {
  std::shared_ptr<const PackCache>
      cache;  // null: nothing to pack, or the weight table packs into memory
  bool built = false;
  bool kept = false;        // the panels are a file of the cache folder, or would be one
  std::uint64_t bytes = 0;  // of all panels this model needs, cached or not
  std::string note;         // why there is no cache although weights are packed; "" otherwise
};

/// Panels of the weights that `needs` lists. Errors: Cancelled, what the backend's pack() says,
/// MissingTensor.
Result<PackCacheResult> open_pack_cache(const Model& model, const Backend& backend,
                                        std::span<const WeightNeed> needs,
                                        const PackCacheOptions& options);

/// A cache that has address space of the right size for every panel: to measure with.
std::shared_ptr<const PackCache> measured_panels();

/// Removes the panel files not used for the longest time until the rest is at most `cap_bytes`;
/// `keep` (a path, or "") neither counts nor goes.
void prune_panels(const std::string& folder, std::uint64_t cap_bytes, const std::string& keep);

}  // namespace cyb
