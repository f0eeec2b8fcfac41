// The branches of adapters in a graph.
#pragma once

#include "model/graph.hpp"
#include "paths/lora.hpp"

namespace cyb {

/// Puts a LoraApply after each Matmul of an adapted weight, and the three nodes of an embedding's
/// branch after its TokenEmbed. Errors: L11 for a weight that another op reads, or none.
Result<void> add_branches(const LoraTerms& terms, Graph& graph);

}  // namespace cyb
