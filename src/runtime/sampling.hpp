// What a model's config says about sampling, and how a request changes it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "model/config.hpp"
#include "text/sampler/sampler.hpp"

namespace cyb {

/// `[sampling]` of a config. `chain` holds the values also where the model's own method is greedy:
/// they take effect when a request asks for sampling.
struct SamplingDefaults {
  bool greedy = true;
  SamplingConfig chain{.temperature = 1.0};
};

/// Values that a request sets; the rest comes from the model.
struct SamplingOverrides {
  std::optional<double> temperature{}, top_p{}, min_p{}, repetition_penalty{};
  std::optional<std::uint32_t> top_k{};
};

/// Errors: F31 (wrong type), InvalidConfig{"sampling.method"}.
Result<SamplingDefaults> read_sampling(const ConfigTable& config);

/// temperature, top_k, top_p or min_p of a request turn a greedy default into the chain
/// (temperature 0 stays greedy); a repetition penalty works with either. `seed`: 0 takes the
/// config's, and if that is 0 too, one from the system; the result's seed is never 0 by accident.
SamplingConfig resolve_sampling(const SamplingDefaults& defaults,
                                const SamplingOverrides& overrides, std::uint64_t seed);

/// A random seed from the system, not 0.
std::uint64_t system_seed();

}  // namespace cyb
