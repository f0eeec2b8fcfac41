// GGUF file(s) to ModelDraft.
#pragma once

#include <string>

#include "import/import.hpp"

namespace cyb::gguf {

/// Errors: as read_source.
Result<ModelDraft> read_gguf(const std::string& path, ImportReport& report,
                             const ImportOptions& options);

}  // namespace cyb::gguf
