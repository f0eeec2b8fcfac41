// rope_scaling (transformers 4) and rope_parameters (transformers 5) of a config.json.
#pragma once

#include "import/architecture.hpp"
#include "import/hf/config_reader.hpp"
#include "import/hf/model_types.hpp"

namespace cyb::hf {

/// One rope for all layers. `dynamic` lengthens max_positions. Errors: InvalidConfig naming the
/// key; unknown types are refused by name.
Result<void> read_rope(ConfigReader& config, const ModelType& model, LlamaStyleConfig& out,
                       ImportReport& report);

/// Gemma 3: one table per layer kind, or rope_theta, rope_local_base_freq and rope_scaling.
Result<void> read_rope_per_kind(ConfigReader& config, LlamaStyleConfig& out, ImportReport& report);

}  // namespace cyb::hf
