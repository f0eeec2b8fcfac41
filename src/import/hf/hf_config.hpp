// config.json of a Hugging Face checkpoint to LlamaStyleConfig. Keys that a checkpoint omits have
// the defaults of transformers' config class of the model_type; every key is used, known to be
// harmless, or refused by name.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "import/architecture.hpp"

namespace cyb::hf {

struct HfConfig {
  LlamaStyleConfig architecture;
  std::string_view table;  // name table (names.hpp)
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  std::int64_t mtp_layers = 0;  // `model.mtp_layers` that may be left out
  bool fp8 = false;             // a quantization_config says so: 8-bit floats with scales
  std::vector<std::int64_t> eos_ids;
  std::optional<std::int64_t> bos_id, pad_id;
  std::vector<std::int64_t> class_ids;  // those that the class gives where config.json has none
};

/// Errors: InvalidConfig naming the key; NotBuilt for an unknown model_type, with the list of those
/// that are known.
Result<HfConfig> read_config(const nlohmann::json& config, ImportReport& report);

}  // namespace cyb::hf
