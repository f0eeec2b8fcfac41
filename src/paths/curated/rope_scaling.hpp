// Rope frequencies of a config: the rules of spec model-format section 4.3.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

/// What the frequencies of a rope are, and how they depend on T, the length of the sequence.
struct RopeScaling {
  std::vector<float> frequencies;       // f_j, j < R/2; empty: base^(-2j/R)
  std::vector<float> long_frequencies;  // longrope: f_j where T > original_tokens
  double attention_factor = 1;          // cos and sin are multiplied by it
  bool dynamic = false;                 // NTK: the base grows with T above original_tokens
  double dynamic_factor = 1;
  std::uint32_t original_tokens = 0;  // of longrope and dynamic
  bool from_table = false;            // factors stored in the model

  bool depends_on_length() const noexcept { return dynamic || !long_frequencies.empty(); }
};

/// The scaling of [architecture.rope_scaling] for rope dimension R and base theta. Errors:
/// InvalidConfig{rope_scaling.type} for an unknown type, F31 for a key that the type needs and
/// lacks.
Result<RopeScaling> read_rope_scaling(const ConfigTable& config, const TensorSource& tensors,
                                      double theta, std::uint32_t rope_dim);

}  // namespace cyb
