// Which encoding a tensor gets.
#pragma once

#include <optional>
#include <string>

#include "import/quantize/quantize.hpp"

namespace cyb::quantize {

struct Choice {
  DType to = DType::kF32;
  std::string reason;
};

/// What the rules need to know of a model.
struct ModelFacts {
  bool has_head = false;  // lm_head.weight; without one the embedding is the head too
};

/// The rules without --keep: vectors, tables and what is no weight matrix stay; the head (a tied
/// embedding) gets a better encoding; rows that are no multiple of the block get one of 32 values.
Choice choose(const DraftTensor& tensor, DType to, const ModelFacts& facts);

/// Why `tensor` cannot have the encoding, or nullopt.
std::optional<std::string> why_not(const DraftTensor& tensor, DType to);

}  // namespace cyb::quantize
