// What a model's config says about sampling, and how a request changes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"
#include "text/sampler/sampler.hpp"

namespace cyb {

class Tokenizer;

/// `[sampling]` of a config. `chain` holds the values also where the model's own method is greedy:
/// they take effect when a request asks for sampling.
struct SamplingDefaults {
  bool greedy = true;
  SamplingConfig chain{.temperature = 1.0};
};

/// A bias of a request: of the id, or where `text` is not empty of the one token that is that text.
struct BiasRequest {
  std::int32_t id = -1;
  std::string text{};
  double bias = 0;
};

/// Values that a request sets; the rest comes from the model. Meanings: SamplingConfig.
struct SamplingOverrides {
  std::optional<double> temperature{}, top_p{}, min_p{}, repetition_penalty{};
  std::optional<std::uint32_t> top_k{};
  std::optional<double> temperature_range{}, temperature_exponent{};
  std::optional<double> typical_p{}, top_n_sigma{}, xtc_probability{}, xtc_threshold{};
  std::optional<double> presence_penalty{}, frequency_penalty{};
  std::optional<std::uint32_t> penalty_last_n{};
  std::optional<double> dry_multiplier{}, dry_base{};
  std::optional<std::uint32_t> dry_allowed_length{}, dry_last_n{};
  std::optional<std::vector<std::string>> dry_breakers{};  // texts; else kDryBreakers
  std::optional<double> mirostat_tau{}, mirostat_eta{};
  std::vector<BiasRequest> logit_bias{};
  std::vector<SamplerKind> order{};  // empty: the default one
};

/// "\n", ":", "\"", "*": those of DRY's author.
std::span<const std::string_view> default_dry_breakers() noexcept;

/// Errors: F31 (wrong type), InvalidConfig{"sampling.method"}.
Result<SamplingDefaults> read_sampling(const ConfigTable& config);

/// "temperature,top_p" as kinds in that order. Errors: InvalidInput naming the element.
Result<std::vector<SamplerKind>> parse_samplers(std::string_view list);

/// Errors: InvalidInput for a value of a sampler that a given order does not list: it would be
/// without effect.
Result<void> check_overrides(const SamplingOverrides& overrides);

/// A temperature, a filter or an order of a request turns a greedy default into the chain
/// (temperature 0 stays greedy); penalties and biases work with either. Mirostat switches the
/// model's own filters off, those of the request apart. `seed`: 0 takes the config's, and if that
/// is 0 too, one from the system; the result's seed is never 0 by accident.
SamplingConfig resolve_sampling(const SamplingDefaults& defaults,
                                const SamplingOverrides& overrides, std::uint64_t seed);

/// What of a request needs the vocabulary: biases by text, breakers of DRY. `tokenizer` may be
/// null. Errors: InvalidInput for a text that is not one token, Tokenizer where there is none.
Result<void> resolve_texts(const Tokenizer* tokenizer, const SamplingOverrides& overrides,
                           SamplingConfig& config);

/// A random seed from the system, not 0.
std::uint64_t system_seed();

}  // namespace cyb
