// From what a user names to an open model: a `.model` file, a source that is imported into the
// store once, or a name or id in the store. The command line and the library share these rules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.hpp"
#include "import/import.hpp"
#include "model/model.hpp"
#include "model/store.hpp"

namespace cyb::api {

struct SourceOptions {
  std::function<void(const ImportProgress&)> progress;   // of an import; may be empty
  std::function<void(const std::string&)> note;          // one line for the user; may be empty
  std::function<void(const ImportReport&)> on_imported;  // after an import; may be empty
  std::stop_token stop;
  // Named dimensions of an ONNX file that an import fixes.
  std::vector<std::pair<std::string, std::int64_t>> dims = {};
  bool tokenizer_only = false;  // of an import: the vocabulary without the tensors
  std::string encoding = {};    // of a tiktoken rank file, as ImportOptions
};

struct ImportedModel {
  std::string path;
  ImportReport report;
};

/// Imports `source` to `out_path`, or into the store where that is empty. `name`: "" takes the
/// source's own. Errors: as import_model, Io, Cancelled.
Result<ImportedModel> import_to(const std::string& source, const std::string& out_path,
                                const std::string& name, const SourceOptions& options);

/// How a `.model` file comes into the store.
struct ModelFile {
  std::string path;
  std::string name{};              // "" takes the model's own
  bool move = false;               // else it is copied
  const SourceKey* key = nullptr;  // what it stands for; null: not remembered
};

/// A `.model` file into the store, after everything in it is checked as `verify` does. Errors: F
/// codes, Io, Cancelled, InvalidInput for a name that a store cannot have.
Result<StoredModel> add_to_store(const ModelFile& file, const SourceOptions& options);

/// Imports `source` into the store as what `key` stands for (null: not remembered). Errors: as
/// import_to.
Result<ImportedModel> import_as(const std::string& source, const std::string& name,
                                const SourceKey* key, const SourceOptions& options);

/// Path of the `.model` file that `what` names. A source is looked up by path, size and mtime, then
/// by the BLAKE3 of its bytes, and imported when neither is known. Errors: Io for a path that does
/// not exist, InvalidInput for an unknown name, as import_to.
Result<std::string> find_model_file(const std::string& what, const SourceOptions& options);

/// find_model_file, then Model::open. A damaged copy in the store is made again where `what` is its
/// source; where it is a name, `note` says how.
Result<std::shared_ptr<const Model>> open_model(const std::string& what,
                                                const ModelOptions& model_options,
                                                const SourceOptions& options);

}  // namespace cyb::api
