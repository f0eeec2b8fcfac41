// Tokenizers that are one file: tokenizer.json, sentencepiece models, tiktoken rank files.
#pragma once

#include <string>
#include <string_view>

#include "import/import.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb {

/// What the bytes and the name of a file say it is.
enum class TokenizerForm { kNone, kJson, kSentencePiece, kTiktoken };
TokenizerForm tokenizer_form(std::string_view name, std::string_view bytes) noexcept;

/// `encoding`: of a rank file, "" takes it from the file's name. Errors: those of the readers;
/// InvalidInput where no encoding is named.
Result<TokenizerParts> read_tokenizer_file(const std::string& path, std::string_view encoding);

/// A draft of a tokenizer alone. Errors: as read_tokenizer_file, as place_tokenizer_alone.
Result<ModelDraft> read_tokenizer_file_alone(const std::string& path, ImportReport& report,
                                             const ImportOptions& options);

}  // namespace cyb
