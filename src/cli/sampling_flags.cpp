// Ranges are those of the sampler; what is not given is the model's own.
#include "cli/sampling_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/text_check.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();

std::optional<std::uint32_t> narrow(const std::optional<std::uint64_t>& value) {
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::string names_of_samplers() {
  std::string out;
  for (const SamplerKind kind : default_samplers()) {
    if (!out.empty()) out += ',';
    out += sampler_name(kind);
  }
  return out;
}

/// The words of an InvalidInput without "input: ".
Error samplers_error(const Error& error) {
  std::string_view text = error.message();
  constexpr std::string_view kKind = "input: ";
  if (text.starts_with(kKind)) text.remove_prefix(kKind.size());
  return usage_error(fmt::format("--samplers: {}", text));
}

}  // namespace

Result<BiasRequest> read_logit_bias(std::string_view text) {
  const auto parts = split_named(text);
  const Error wrong = usage_error(fmt::format(
      "--logit-bias: \"{}\" is not ID=V or TEXT=V, with V a number from -1000 to 1000 or -inf",
      text));
  if (!parts) return fail(wrong);
  auto [name, value] = *parts;
  BiasRequest out;
  if (value == "-inf") {
    out.bias = -std::numeric_limits<double>::infinity();
  } else if (const auto number = parse_real(value); number && *number >= -1000 && *number <= 1000) {
    out.bias = *number;
  } else {
    return fail(wrong);
  }
  const auto id = parse_integer(name);
  if (id && *id <= std::uint64_t{INT32_MAX}) {
    out.id = static_cast<std::int32_t>(*id);
    return out;
  }
  if (name.size() > 2 && name.starts_with('"') && name.ends_with('"')) {
    name = name.substr(1, name.size() - 2);
  }
  CYB_TRY(api::check_utf8(name, "--logit-bias"));
  out.text = name;
  return out;
}

void SamplingFlags::declare(Options& options) {
  options.integer("-n,--max-tokens", max_tokens_, {1, kMaxU32}, "N", "Longest answer in tokens");
  declare_filters(options);
  declare_penalties(options);
  options.integer("--seed", seed_, {0, std::numeric_limits<std::uint64_t>::max()}, "S",
                  "Same seed, same answer (0: a new one each time)");
  options.texts("--stop", stops_, "STR", "End the answer before this text; may be repeated");
  options.integer("--logprobs", logprobs_, {0, 1000}, "K",
                  "With --json: log-probabilities, of the K best tokens too");
}

void SamplingFlags::declare_filters(Options& options) {
  options.real("--temperature", temperature_, {0.0, 100.0}, "T",
               "0 is greedy; higher is more random");
  options.real(
      "--temperature-range", temperature_range_, {0.0, 100.0}, "R",
      "Dynamic temperature: T - R where the model is sure, T + R where it is not (0: off)");
  options.real("--temperature-exponent", temperature_exponent_, {1e-3, 100.0}, "E",
               "Of the entropy, for --temperature-range (1)");
  options.integer("--top-k", top_k_, {0, kMaxU32}, "K", "Only the K most likely tokens (0: all)");
  options.real("--top-p", top_p_, {1e-9, 1.0}, "P",
               "Only the most likely tokens that together have probability P");
  options.real("--min-p", min_p_, {0.0, 0.999999}, "P",
               "Only tokens at least P times as likely as the best");
  options.real("--typical-p", typical_p_, {1e-9, 1.0}, "P",
               "Only the most typical tokens that together have probability P (1: off)");
  options.real("--top-n-sigma", top_n_sigma_, {0.0, 1000.0}, "N",
               "Only tokens within N standard deviations of the best logit (0: off)");
  options.real("--xtc-probability", xtc_probability_, {0.0, 1.0}, "P",
               "How often all but the least of the likely tokens are left out (0: off)");
  options.real("--xtc-threshold", xtc_threshold_, {0.0, 1.0}, "P",
               "What is likely, for --xtc-probability (0.1)");
  options.real(
      "--mirostat-tau", mirostat_tau_, {0.0, 1000.0}, "T",
      "Mirostat 2: the wanted surprise in bits, instead of the model's own filters (0: off)");
  options.real("--mirostat-eta", mirostat_eta_, {1e-6, 1.0}, "E", "Mirostat's learning rate (0.1)");
  options.optional_text("--samplers", samplers_, "LIST",
                        "These samplers only, in this order; names: " + names_of_samplers());
  options.texts("--logit-bias", logit_biases_, "TOKEN=V",
                "Add V to the logit of a token id, or of the token with this text (-inf: never); "
                "may be repeated");
}

void SamplingFlags::declare_penalties(Options& options) {
  options.real("--repetition-penalty", repetition_penalty_, {1e-3, 1e3}, "R",
               "Above 1: less of what was said (1: off)");
  options.real("--presence-penalty", presence_penalty_, {-100.0, 100.0}, "P",
               "Subtracted from the logit of what was said (0: off)");
  options.real("--frequency-penalty", frequency_penalty_, {-100.0, 100.0}, "P",
               "The same, times how often it was said (0: off)");
  options.integer("--penalty-last-n", penalty_last_n_, {0, kMaxU32}, "N",
                  "Penalties look at the last N tokens of prompt and answer (0: all)");
  options.real("--dry-multiplier", dry_multiplier_, {0.0, 1000.0}, "M",
               "DRY: a penalty for going on with a repetition (0: off)");
  options.real("--dry-base", dry_base_, {1.0, 1000.0}, "B",
               "The penalty's growth with each token of the repetition (1.75)");
  options.integer("--dry-allowed-length", dry_allowed_length_, {1, kMaxU32}, "N",
                  "Shortest repetition with a penalty (2)");
  options.integer("--dry-last-n", dry_last_n_, {0, kMaxU32}, "N",
                  "DRY looks at the last N tokens (0: all)");
  options.texts("--dry-breaker", dry_breakers_, "STR",
                "A text that ends a repetition, instead of newline, colon, quote and asterisk; may "
                "be repeated");
}

Result<void> SamplingFlags::check(bool json) const {
  for (const std::string& stop : stops_) CYB_TRY(api::check_utf8(stop, "--stop"));
  for (const std::string& text : dry_breakers_) CYB_TRY(api::check_utf8(text, "--dry-breaker"));
  for (const std::string& text : logit_biases_) CYB_TRY(read_logit_bias(text));
  if (samplers_) {
    if (const auto order = parse_samplers(*samplers_); !order)
      return fail(samplers_error(order.error()));
  }
  if (const auto fits = check_overrides(overrides()); !fits) {
    return fail(samplers_error(fits.error()));
  }
  if (logprobs_ && !json) {
    return fail(usage_error("--logprobs is shown in the JSON only: give --json too"));
  }
  return {};
}

std::vector<std::string> SamplingFlags::without_effect(const SamplingDefaults& defaults) const {
  const GenerateOptions options = generate_options();
  // Any seed: it decides nothing here but would be asked of the system.
  const SamplingConfig config = resolve_sampling(defaults, options.sampling, 1);
  std::vector<std::string> names;
  const auto note = [&](bool given, const char* name) {
    if (given) names.emplace_back(name);
  };
  if (config.temperature == 0.0) {
    note(temperature_range_.has_value(), "--temperature-range");
    note(top_k_.has_value(), "--top-k");
    note(top_p_.has_value(), "--top-p");
    note(min_p_.has_value(), "--min-p");
    note(typical_p_.has_value(), "--typical-p");
    note(top_n_sigma_.has_value(), "--top-n-sigma");
    note(xtc_probability_.has_value(), "--xtc-probability");
    note(mirostat_tau_.has_value(), "--mirostat-tau");
    note(samplers_.has_value(), "--samplers");
    note(seed_.has_value(), "--seed");
  }
  return names;
}

std::vector<std::string> SamplingFlags::without_partner(const SamplingDefaults& defaults) const {
  const SamplingConfig config = resolve_sampling(defaults, overrides(), 1);
  const bool penalties = config.repetition_penalty != 1.0 || config.presence_penalty != 0.0 ||
                         config.frequency_penalty != 0.0;
  std::vector<std::string> names;
  const auto note = [&](bool given, const char* name) {
    if (given) names.emplace_back(name);
  };
  note(temperature_exponent_ && config.temperature_range == 0.0, "--temperature-exponent");
  note(xtc_threshold_ && config.xtc_probability == 0.0, "--xtc-threshold");
  note(mirostat_eta_ && config.mirostat_tau == 0.0, "--mirostat-eta");
  note(penalty_last_n_ && !penalties, "--penalty-last-n");
  if (config.dry_multiplier == 0.0) {
    note(dry_base_.has_value(), "--dry-base");
    note(dry_allowed_length_.has_value(), "--dry-allowed-length");
    note(dry_last_n_.has_value(), "--dry-last-n");
    note(!dry_breakers_.empty(), "--dry-breaker");
  }
  return names;
}

std::vector<std::string> SamplingFlags::given() const {
  const std::pair<const char*, bool> all[] = {
      {"--max-tokens", max_tokens_.has_value()},
      {"--temperature", temperature_.has_value()},
      {"--temperature-range", temperature_range_.has_value()},
      {"--temperature-exponent", temperature_exponent_.has_value()},
      {"--top-k", top_k_.has_value()},
      {"--top-p", top_p_.has_value()},
      {"--min-p", min_p_.has_value()},
      {"--typical-p", typical_p_.has_value()},
      {"--top-n-sigma", top_n_sigma_.has_value()},
      {"--xtc-probability", xtc_probability_.has_value()},
      {"--xtc-threshold", xtc_threshold_.has_value()},
      {"--mirostat-tau", mirostat_tau_.has_value()},
      {"--mirostat-eta", mirostat_eta_.has_value()},
      {"--samplers", samplers_.has_value()},
      {"--logit-bias", !logit_biases_.empty()},
      {"--repetition-penalty", repetition_penalty_.has_value()},
      {"--presence-penalty", presence_penalty_.has_value()},
      {"--frequency-penalty", frequency_penalty_.has_value()},
      {"--penalty-last-n", penalty_last_n_.has_value()},
      {"--dry-multiplier", dry_multiplier_.has_value()},
      {"--dry-base", dry_base_.has_value()},
      {"--dry-allowed-length", dry_allowed_length_.has_value()},
      {"--dry-last-n", dry_last_n_.has_value()},
      {"--dry-breaker", !dry_breakers_.empty()},
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

/// What check() has read already is right.
SamplingOverrides SamplingFlags::overrides() const {
  SamplingOverrides out;
  out.temperature = temperature_;
  out.temperature_range = temperature_range_;
  out.temperature_exponent = temperature_exponent_;
  out.top_k = narrow(top_k_);
  out.top_p = top_p_;
  out.min_p = min_p_;
  out.typical_p = typical_p_;
  out.top_n_sigma = top_n_sigma_;
  out.xtc_probability = xtc_probability_;
  out.xtc_threshold = xtc_threshold_;
  out.mirostat_tau = mirostat_tau_;
  out.mirostat_eta = mirostat_eta_;
  out.repetition_penalty = repetition_penalty_;
  out.presence_penalty = presence_penalty_;
  out.frequency_penalty = frequency_penalty_;
  out.penalty_last_n = narrow(penalty_last_n_);
  out.dry_multiplier = dry_multiplier_;
  out.dry_base = dry_base_;
  out.dry_allowed_length = narrow(dry_allowed_length_);
  out.dry_last_n = narrow(dry_last_n_);
  if (!dry_breakers_.empty()) out.dry_breakers = dry_breakers_;
  if (samplers_) {
    if (auto order = parse_samplers(*samplers_)) out.order = *std::move(order);
  }
  for (const std::string& text : logit_biases_) {
    if (auto bias = read_logit_bias(text)) out.logit_bias.push_back(*std::move(bias));
  }
  return out;
}

GenerateOptions SamplingFlags::generate_options() const {
  GenerateOptions options;
  options.max_tokens = narrow(max_tokens_).value_or(0);
  options.sampling = overrides();
  options.seed = seed_.value_or(0);
  options.stop = stops_;
  options.logprobs = narrow(logprobs_);
  return options;
}

}  // namespace cyb::cli
