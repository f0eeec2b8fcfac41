// What keeps a store usable: its index in order, made anew from the models where it is damaged or
// missing, and a cheap look at a stored copy.
#pragma once

#include <optional>
#include <string>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/store_index.hpp"

namespace cyb {

/// <root>/models/<2 hex>/<62 hex>.model.
std::string store_model_path(const std::string& root, const Digest& file_id);
/// The file_id that such a path stands for; nullopt for any other path.
std::optional<Digest> file_id_of_path(const std::string& path);

/// The index for a reader. One that is damaged, or missing although there are models, is rebuilt
/// under the lock: models from their files, names and sources from the rows that can still be read,
/// else a model gets its own name where that is free. The damaged file stays as index.toml.bad; a
/// warning is logged. Errors: Io; Format "StoreVersion" for an index of a newer program.
Result<StoreIndex> load_store_index(const std::string& root);
/// The same for a caller that holds the store's lock.
Result<StoreIndex> load_store_index_locked(const std::string& root);

/// Adds rows for files that have their place but none, drops rows whose file is gone. Under the
/// lock.
void put_store_in_order(const std::string& root, StoreIndex& index);

/// Identity of a file that is to be stored, or is. `known_file_id`: not hashed again.
Result<StoreIndex::ModelRow> describe_stored(const std::string& path, const Digest* known_file_id);

/// A look at the size and the first page of a stored copy: "" where they are what was stored, else
/// what is wrong. Damage further in is found when the model is opened or verified.
std::string stored_copy_problem(const std::string& path, const StoreIndex::ModelRow& row);

}  // namespace cyb
