// Which tokens stay where not all fit. Nothing is left out unless GenerateOptions::overflow asks
// for it, and what was is reported.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/generation.hpp"

namespace cyb {

struct ContextCut {
  std::vector<std::int32_t> kept;
  std::uint32_t n_dropped = 0;
};

/// The prompt as it is, or where overflow allows it and it would leave no room for one token: its
/// begin-of-text token and its newest tokens.
ContextCut fit_prompt(const Engine& engine, std::span<const std::int32_t> prompt,
                      const GenerateOptions& options);
/// Of a full context: its begin-of-text token and the newer half of the rest.
ContextCut shift_context(const Engine& engine, std::span<const std::int32_t> tokens);

/// The values of one request: the model's own, changed by the options. Errors: as generate().
Result<SamplingConfig> request_sampling(const Engine& engine, const GenerateOptions& options);

}  // namespace cyb
