// What the reader checks of the config part whatever the family: types and ranges of known keys
// (F31), and its agreement with the tensor index (F32, F33, F35).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"
#include "model/model.hpp"

namespace cyb {

/// Legacy conventions and synonyms become today's keys: `rms_norm_eps >= 1` is its inverse, an
/// integer `scale` in [sampling] divides that table's numbers, `eos_id` is `eos_token_ids` ...
void normalise_config(ConfigTable& config);

/// F31 for known keys at the top level, in [architecture], [tokenizer] and [sampling].
Result<void> check_config(const ConfigTable& config);

/// Tokens that the vocab part must have; nullopt where the config says nothing of it.
std::optional<std::uint64_t> expected_tokens(const ConfigTable& config);

using TensorFinder = std::function<const TensorEntry*(std::string_view)>;

/// F35; F32 and F33 for what the config says of the token embedding and the output head.
Result<void> check_config_against_tensors(const ConfigTable& config,
                                          const std::vector<TensorEntry>& tensors,
                                          const TensorFinder& find);

}  // namespace cyb
