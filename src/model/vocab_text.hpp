// The vocab part: streaming reader, checks (F34) and canonical writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/vocab_data.hpp"

namespace cyb {

/// Reads the part in one pass. `vocab_size`: what the config says, nullopt where nothing is known.
/// A `[types]` entry that is left out is "normal". Errors: F02, F05, F09, F34.
Result<VocabData> read_vocab(std::string_view text, std::optional<std::uint64_t> vocab_size);

/// F34 `vocab: merge <r> names an unknown token`: a side of a merge, or what it makes, is no token.
Result<void> check_merges(const VocabData& vocab);

/// Canonical text: tokens, merges, scores, types (but normal ones), special, particles; empty ones
/// are left out, and code points above U+007E are escaped. Errors: F05, F34.
Result<std::string> write_vocab(const VocabData& vocab);

}  // namespace cyb
