// The tokenizer of a Hugging Face folder: tokenizer.json, tokenizer_config.json,
// chat_template.jinja.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/import.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb::hf {

/// Ids that config.json and generation_config.json state.
struct StatedIds {
  std::vector<std::int64_t> eos;
  std::optional<std::int64_t> bos, pad;
};

struct FolderTokenizer {
  TokenizerParts parts;
  std::string chat_template;  // "": none
};

/// A folder without any tokenizer file is a model of ids. Errors: Format, NotBuilt (a tokenizer
/// that exists only as vocab.txt or tekken.json; classes and components that are not built),
/// InvalidConfig.
Result<FolderTokenizer> read_folder_tokenizer(const std::string& folder, const StatedIds& ids,
                                              ImportReport& report);

/// The files it reads, of those that exist.
std::vector<std::string> tokenizer_files(const std::string& folder);

}  // namespace cyb::hf
