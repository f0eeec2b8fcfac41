// Parts of reading a config.json that hf_config.cpp puts together.
#pragma once

#include "import/hf/config_reader.hpp"
#include "import/hf/hf_config.hpp"
#include "import/hf/model_types.hpp"

namespace cyb::hf {

/// Window, layer_types and layers without rope. Errors: InvalidConfig naming the key.
Result<void> read_layers(ConfigReader& config, const ModelType& type, LlamaStyleConfig& c);

/// Keys that one class has: multipliers, softcaps, biases, parallel block ... Errors:
/// InvalidConfig naming the key.
Result<void> read_kind(ConfigReader& config, const ModelType& type, HfConfig& out);

}  // namespace cyb::hf
