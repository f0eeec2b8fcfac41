// How long a context a model may have: what it was trained for, or more where its rope rule says
// so.
#pragma once

#include <cstdint>
#include <string>

#include "model/config.hpp"

namespace cyb {

struct ContextLimit {
  std::uint32_t trained = 0;  // max_position_embeddings
  std::uint32_t most = 0;     // with the rope rule; never below `trained`
  /// Why no more: "its rope_scaling yarn reaches 131072", "it has no rope_scaling that reaches
  /// further".
  std::string reason;
};

/// `trained` positions times the factor of [architecture.rope_scaling]: linear and dynamic scale
/// max_position_embeddings, yarn scales original_max_position_embeddings (the rule of vLLM's
/// derived_max_model_len); llama3, longrope and tables are part of what was trained.
ContextLimit context_limit(const ConfigTable& config, std::uint32_t trained);

}  // namespace cyb
