// Rope frequencies of a config: the rules of spec model-format section 4.3 that do not depend on
// the sequence length.
#pragma once

#include <vector>

#include "model/config.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

/// Frequencies f_j, j < rope_dim / 2, as f32; empty where the type is absent or "default" (then
/// base^(-2j/rope_dim) holds). Errors: InvalidConfig{rope_scaling.type} for a type that is not
/// built, F31 for a key that the type needs and lacks.
Result<std::vector<float>> scaled_rope_frequencies(const ConfigTable& config,
                                                   const TensorSource& tensors, double theta,
                                                   std::uint32_t rope_dim);

}  // namespace cyb
