// Checkpoint: all tensors of a folder of safetensors files, one or sharded, checked before any
// weight is read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "import/safetensors/safetensors_file.hpp"

namespace cyb::safetensors {

struct Shard {
  std::shared_ptr<const MappedFile> file;
  SafetensorsFile header;
};

/// `folder`: with model.safetensors, or model.safetensors.index.json and its shards. `file`: "" or
/// the one .safetensors file of the folder to read. Errors: Io, Format; a missing, extra or double
/// shard and a tensor that two shards have are named.
Result<std::vector<Shard>> open_checkpoint(const std::string& folder, const std::string& file);

/// The weight files that open_checkpoint would read, as far as the index tells; for source_key.
Result<std::vector<std::string>> weight_files(const std::string& folder, const std::string& file);

}  // namespace cyb::safetensors
