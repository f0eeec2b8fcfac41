// Recording: a family body as IR. Used at import (the stored graph part) and where a file has none.
#pragma once

#include "model/config.hpp"
#include "model/graph.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

/// The graph of a model of a curated family: inputs ids [B, S], pos [S]; output logits [B, S, V].
/// Errors: D1, F31..F33.
Result<Graph> record_graph(const ConfigTable& config, const TensorSource& tensors);

}  // namespace cyb
