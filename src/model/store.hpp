// Store: models by content under the data folder: models/<2 hex>/<62 hex>.model by file_id, with
// names and a source index.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/writer.hpp"

namespace cyb {

class StoreStaging;

struct StoredModel {
  std::string name;
  Digest file_id, model_id;
  std::string path;
  std::uint64_t file_bytes = 0;
  std::string problem{};  // list() only: why the copy cannot be used, "" for one that looks sound
};

/// What identifies a source that was imported before: path, size and times first, BLAKE3 of its
/// files otherwise; by the same revision of its importer.
struct SourceKey {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;
  std::optional<Digest> content;
  std::int64_t revision = 0;
  std::int64_t ctime_ns = 0;  // of the newest change: a time that nobody sets
};

/// All operations are safe with other processes at work on the same store: changes happen under a
/// lock file and by atomic renames, readers need no lock. An index that is damaged or lost is made
/// anew from the models, the old one kept beside it. A process that dies at any point leaves a
/// store that the next change puts in order: its staging folder is swept, a model that had its
/// place but no entry yet gets one.
class Store {
 public:
  /// `root`: "" = data_folder(). Folders are made on the first write, not here.
  explicit Store(std::string root = {});
  const std::string& root() const noexcept { return root_; }

  /// A fresh path inside the store on the same file system, to write a model to before add(). Files
  /// there are gone with the last copy of this Store, or swept once its process is dead.
  Result<std::string> staging_path() const;
  /// Moves the finished file at `staged_path` into the store under its file_id and gives it `name`.
  /// A name in use moves to the new model; the old one stays, reachable by id. `written`: what
  /// write_model returned for this file, which saves hashing it again; null: it is opened and
  /// hashed.
  Result<StoredModel> add(const std::string& staged_path, const std::string& name,
                          const SourceKey* source, const WrittenModel* written = nullptr);
  /// By name, full id or unique prefix (>= 6 hex digits) of file_id or model_id, with or without
  /// "blake3:". nullopt: none. Ambiguous: InvalidInput that lists the candidates. A copy whose size
  /// or first bytes are not those that were stored: Format "StoreCopy" with the file and the cure.
  Result<std::optional<StoredModel>> find(const std::string& name_or_id) const;
  /// A model made from this source before: by path, size and mtime, else by content where the key
  /// has it; a match by content also renews the entry of the path. A damaged copy counts as none
  /// (logged), so that the source is imported again over it.
  Result<std::optional<StoredModel>> find_source(const SourceKey& source) const;
  /// One row per name, and one with an empty name for a model without any; ascending by name, id.
  Result<std::vector<StoredModel>> list() const;

 private:
  std::string root_;
  std::shared_ptr<StoreStaging> staging_;
};

}  // namespace cyb
