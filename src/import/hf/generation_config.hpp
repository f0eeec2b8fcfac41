// generation_config.json: the [sampling] table and the ids that end an answer.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "import/import.hpp"

namespace cyb::hf {

struct GenerationConfig {
  ConfigTable sampling;
  std::vector<std::int64_t> eos_ids;  // empty: the file does not say
  std::optional<std::int64_t> bos_id, pad_id;
};

/// `config` null: greedy. do_sample = true: the chain, with transformers' defaults for what is not
/// stated (top_k 50). Settings that are not applied become warnings. Errors: InvalidConfig naming
/// the key.
Result<GenerationConfig> read_generation_config(const nlohmann::json* config, ImportReport& report);

}  // namespace cyb::hf
