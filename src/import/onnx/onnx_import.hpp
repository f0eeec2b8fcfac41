// ONNX files become a ModelDraft whose graph part runs on the graph path; there are no text parts.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "import/import.hpp"
#include "import/onnx/proto.hpp"

namespace cyb::onnx {

/// `bytes` must stay valid as long as the draft. `folder`: where external data lies; empty: none is
/// read. Errors: Format, NotBuilt (with every unknown operator and its count), SourceEncoding.
Result<ModelDraft> parse_onnx(Bytes bytes, const std::string& folder, ImportReport& report);

/// The same for a file, with its name and lineage.
Result<ModelDraft> read_onnx(const std::string& path, ImportReport& report,
                             const ImportOptions& options);

/// The file itself and the files of its external data.
Result<std::vector<std::string>> onnx_files(const std::string& path);

/// True for a file named *.onnx, or one that begins as a model and parses as one.
bool is_onnx(const std::string& path);

}  // namespace cyb::onnx
