// From TokenizerParts to the vocab part and the [tokenizer] table of a draft.
#pragma once

#include <cstdint>
#include <string_view>

#include "import/import.hpp"
#include "text/tokenizer_config.hpp"

namespace cyb {

/// Writes [tokenizer] and the vocabulary into the draft and fills up to `n_rows` ids with unused
/// [PAD<id>] tokens. Tokens past the last row have no embedding: they are left out with a warning
/// where they are added tokens. Errors: F34; InvalidConfig for a special id past the vocabulary.
Result<void> place_vocabulary(TokenizerParts parts, std::int64_t n_rows, ModelDraft& draft,
                              ImportReport& report);

/// A draft of a tokenizer alone: model_type "tokenizer", no tensor.
Result<void> place_tokenizer_alone(TokenizerParts parts, ModelDraft& draft, ImportReport& report);

/// The chat part (format custom) for a template of the source, and whether the template engine
/// takes it. Empty: no chat part.
void place_template(std::string_view source, ModelDraft& draft, ImportReport& report);

}  // namespace cyb
