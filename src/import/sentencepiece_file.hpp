// sentencepiece `.model` files: the protobuf message ModelProto as what the text layer makes a
// vocabulary of.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "text/sentencepiece_vocabulary.hpp"

namespace cyb {

/// Views into `bytes`. Errors: Format "sentencepiece model: ...", F34 for too many pieces, NotBuilt
/// for a field that is not known and may change ids.
Result<SentencePieceSource> read_sentencepiece(std::span<const std::byte> bytes);

}  // namespace cyb
