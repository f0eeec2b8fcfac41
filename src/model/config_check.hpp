// What the reader checks of the config part whatever the family: types and ranges of known keys
// (F31), and its agreement with the tensor index (F32, F33, F35).
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"
#include "model/model.hpp"

namespace cyb {

/// Legacy conventions become today's: `rms_norm_eps >= 1` is its inverse, and an integer `scale` in
/// [sampling] divides that table's numbers.
void normalise_config(ConfigTable& config);

/// F31 for known keys at the top level, in [architecture], [tokenizer] and [sampling].
Result<void> check_config(const ConfigTable& config);

using TensorFinder = std::function<const TensorEntry*(std::string_view)>;

/// F35; F32 and F33 for what the config says of the token embedding and the output head.
Result<void> check_config_against_tensors(const ConfigTable& config,
                                          const std::vector<TensorEntry>& tensors,
                                          const TensorFinder& find);

}  // namespace cyb
