// Which files of a repository are the model.
#pragma once

#include <string>
#include <vector>

#include "api/pull/hub_tree.hpp"
#include "base/result.hpp"

namespace cyb::api {

struct Selection {
  std::vector<HubFile> files;
  std::string import_path;  // what `import` is told, relative; "": the folder
  std::string index;        // model.safetensors.index.json whose shards are to be added, or ""
};

/// `wanted` as HubSource. Errors: N10 that lists the choices with their sizes, N11.
Result<Selection> select_files(const std::vector<HubFile>& files, const std::string& wanted);

/// Adds the shards that the index names. Errors: N06, N10 for one that is not in the repository.
Result<void> add_shards(const std::vector<HubFile>& files, std::string_view index_text,
                        Selection& selection);

}  // namespace cyb::api
