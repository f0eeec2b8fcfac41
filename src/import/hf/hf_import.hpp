// A Hugging Face folder (or a .safetensors file with config.json beside it) to ModelDraft.
#pragma once

#include <string>
#include <vector>

#include "import/import.hpp"

namespace cyb::hf {

/// `folder` and, where one weight file was named, its plain name. Errors: as read_source.
Result<ModelDraft> read_folder(const std::string& folder, const std::string& file,
                               ImportReport& report, const ImportOptions& options);

/// All files that read_folder would read. Errors: Io, Format of the index.
Result<std::vector<std::string>> folder_files(const std::string& folder, const std::string& file);

/// The tokenizer and the chat template of a folder, without any tensor. Errors: as read_folder.
Result<ModelDraft> read_folder_tokenizer_alone(const std::string& folder, ImportReport& report,
                                               const ImportOptions& options);

}  // namespace cyb::hf
