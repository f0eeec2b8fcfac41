// Ranges are those of the sampler; what is not given is the model's own.
#include "cli/sampling_flags.hpp"

#include <limits>

#include "api/text_check.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();

std::optional<std::uint32_t> narrow(const std::optional<std::uint64_t>& value) {
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

}  // namespace

void SamplingFlags::declare(Options& options) {
  options.integer("--max-tokens", max_tokens_, {1, kMaxU32}, "N", "Longest answer in tokens");
  options.real("--temperature", temperature_, {0.0, 100.0}, "T",
               "0 is greedy; higher is more random");
  options.integer("--top-k", top_k_, {0, kMaxU32}, "K", "Only the K most likely tokens (0: all)");
  options.real("--top-p", top_p_, {1e-9, 1.0}, "P",
               "Only the most likely tokens that together have probability P");
  options.real("--min-p", min_p_, {0.0, 0.999999}, "P",
               "Only tokens at least P times as likely as the best");
  options.real("--repetition-penalty", repetition_penalty_, {1e-3, 1e3}, "R",
               "Above 1: less of what was said (1: off)");
  options.integer("--seed", seed_, {0, std::numeric_limits<std::uint64_t>::max()}, "S",
                  "Same seed, same answer (0: a new one each time)");
  options.texts("--stop", stops_, "STR", "End the answer before this text; may be repeated");
  options.integer("--logprobs", logprobs_, {0, 1000}, "K",
                  "With --json: log-probabilities, of the K best tokens too");
}

Result<void> SamplingFlags::check(bool json) const {
  for (const std::string& stop : stops_) CYB_TRY(api::check_utf8(stop, "--stop"));
  if (logprobs_ && !json) {
    return fail(usage_error("--logprobs is shown in the JSON only: give --json too"));
  }
  return {};
}

std::vector<std::string> SamplingFlags::without_effect(const SamplingDefaults& defaults) const {
  const GenerateOptions options = generate_options();
  // Any seed: it decides nothing here but would be asked of the system.
  if (resolve_sampling(defaults, options.sampling, 1).temperature != 0.0) return {};
  std::vector<std::string> names;
  if (top_k_) names.emplace_back("--top-k");
  if (top_p_) names.emplace_back("--top-p");
  if (min_p_) names.emplace_back("--min-p");
  if (seed_) names.emplace_back("--seed");
  return names;
}

std::vector<std::string> SamplingFlags::given() const {
  const std::pair<const char*, bool> all[] = {
      {"--max-tokens", max_tokens_.has_value()},
      {"--temperature", temperature_.has_value()},
      {"--top-k", top_k_.has_value()},
      {"--top-p", top_p_.has_value()},
      {"--min-p", min_p_.has_value()},
      {"--repetition-penalty", repetition_penalty_.has_value()},
      {"--seed", seed_.has_value()},
      {"--stop", !stops_.empty()},
      {"--logprobs", logprobs_.has_value()},
  };
  std::vector<std::string> names;
  for (const auto& [name, is_given] : all) {
    if (is_given) names.emplace_back(name);
  }
  return names;
}

GenerateOptions SamplingFlags::generate_options() const {
  GenerateOptions options;
  options.max_tokens = narrow(max_tokens_).value_or(0);
  options.sampling.temperature = temperature_;
  options.sampling.top_k = narrow(top_k_);
  options.sampling.top_p = top_p_;
  options.sampling.min_p = min_p_;
  options.sampling.repetition_penalty = repetition_penalty_;
  options.seed = seed_.value_or(0);
  options.stop = stops_;
  options.logprobs = narrow(logprobs_);
  return options;
}

}  // namespace cyb::cli
