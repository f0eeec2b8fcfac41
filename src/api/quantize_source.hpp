// Quantising what a user names: a model or a source, into a file or into the store.
#pragma once

#include <string>

#include "api/model_source.hpp"
#include "base/result.hpp"
#include "import/quantize/quantize.hpp"
#include "model/writer.hpp"

namespace cyb::api {

struct QuantizedModel {
  std::string path, name;
  WrittenModel written;
  ImportReport imported;  // of a source that is no `.model`
};

/// Reads `what` (a `.model`, a name in the store, or a source, which is not stored itself), encodes
/// it by `options` and writes `out_path`, or adds it to the store where that is empty. `name`: ""
/// takes the source's with "-<encoding>" behind it. `report`: filled while the model is written.
/// Errors: as find_model_file, read_source, quantize_draft and write_model; InvalidInput where the
/// result would replace what is read.
Result<QuantizedModel> quantize_to(const std::string& what, const std::string& out_path,
                                   const std::string& name, const QuantizeOptions& options,
                                   const SourceOptions& source, QuantizeReport& report);

}  // namespace cyb::api
