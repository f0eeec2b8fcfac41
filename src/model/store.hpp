// Store: models by content under the data folder: models/<2 hex>/<62 hex>.model by file_id, with names and a source index.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"

namespace cyb {

struct StoredModel {
  std::string name;
  Digest file_id, model_id;
  std::string path;
  std::uint64_t file_bytes = 0;
};

/// What identifies a source that was imported before: path, size and mtime first, BLAKE3 of its files otherwise.
struct SourceKey {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;
  std::optional<Digest> content;
};

/// All operations are safe with other processes at work on the same store (lock file; atomic renames).
class Store {
 public:
  /// `root`: "" = data_folder(). Folders are made on the first write, not here.
  explicit Store(std::string root = {});
  const std::string& root() const noexcept { return root_; }

  /// A fresh path inside the store on the same file system, to write a model to before add().
  Result<std::string> staging_path() const;
  /// Moves the finished file at `staged_path` into the store under its file_id and gives it `name`. A name in use moves to the new model, reported by the return value's name list in list().
  Result<StoredModel> add(const std::string& staged_path, const std::string& name, const SourceKey* source);
  /// By name, full id or unique prefix (>= 6 hex digits) of file_id or model_id, with or without "blake3:". nullopt: none. Ambiguous: InvalidInput that lists the candidates.
  Result<std::optional<StoredModel>> find(const std::string& name_or_id) const;
  /// A model made from this source before; also fills a stale entry after a content match.
  Result<std::optional<StoredModel>> find_source(const SourceKey& source) const;
  Result<std::vector<StoredModel>> list() const;

 private:
  std::string root_;
};

}  // namespace cyb
