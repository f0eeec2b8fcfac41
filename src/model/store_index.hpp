// The store's index file: models, names and sources, as TOML. Written atomically under the lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/store.hpp"

namespace cyb {

struct StoreIndex {
  struct ModelRow {
    Digest file_id, model_id;
    std::uint64_t file_bytes = 0;
  };
  struct NameRow {
    std::string name;
    Digest file_id;
  };
  struct SourceRow {
    SourceKey key;
    Digest file_id;
  };
  std::vector<ModelRow> models;
  std::vector<NameRow> names;
  std::vector<SourceRow> sources;

  const ModelRow* find_model(const Digest& file_id) const noexcept;
  void put_model(const ModelRow& row);
  void put_name(const std::string& name, const Digest& file_id);
  /// One row per path.
  void put_source(const SourceKey& key, const Digest& file_id);
};

/// Code of the error for an index that a newer program wrote.
inline constexpr std::string_view kStoreVersionCode = "StoreVersion";

/// An absent file is an empty index. Errors: Io; Format where the file is damaged, with the code
/// "StoreVersion" where it is only newer.
Result<StoreIndex> read_store_index(const std::string& path);
/// Names and sources of a damaged file: of every row that parses by itself.
StoreIndex salvage_store_index(const std::string& path);
Result<void> write_store_index(const std::string& path, const StoreIndex& index);

/// A name that add() accepts: a model name that is no path component of special meaning.
bool is_store_name(std::string_view name) noexcept;

}  // namespace cyb
