// Methods of spec ir.md section 5.8: 1..4 are the chain with the other filters off.
#include "runtime/sampling.hpp"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace cyb {
namespace {

Result<void> apply_method(const std::string& method, SamplingDefaults& out) {
  SamplingConfig& chain = out.chain;
  const bool temperature = method == "temperature", top_k = method == "top_k";
  const bool top_p = method == "top_p", min_p = method == "min_p";
  if (method != "greedy" && method != "chain" && !temperature && !top_k && !top_p && !min_p) {
    return fail(invalid_config("sampling.method", "\"" + method +
                                                      "\" is none of greedy, temperature, top_k, "
                                                      "top_p, min_p, chain"));
  }
  out.greedy = method == "greedy";
  if (temperature || top_p || min_p) chain.top_k = 0;
  if (temperature || top_k || min_p) chain.top_p = 1.0;
  if (temperature || top_k || top_p) chain.min_p = 0.0;
  return {};
}

}  // namespace

Result<SamplingDefaults> read_sampling(const ConfigTable& config) {
  SamplingDefaults out;
  SamplingConfig& chain = out.chain;
  CYB_ASSIGN(chain.temperature, config.number_or("sampling.temperature", 1.0));
  CYB_ASSIGN(chain.top_p, config.number_or("sampling.top_p", 1.0));
  CYB_ASSIGN(chain.min_p, config.number_or("sampling.min_p", 0.0));
  CYB_ASSIGN(chain.typical_p, config.number_or("sampling.typical_p", 1.0));
  CYB_ASSIGN(chain.repetition_penalty, config.number_or("sampling.repetition_penalty", 1.0));
  CYB_ASSIGN(const std::int64_t seed, config.integer_or("sampling.seed", 0));
  chain.seed = static_cast<std::uint64_t>(seed);
  if (config.at("sampling.top_k") != nullptr) {
    CYB_ASSIGN(const std::int64_t k, config.integer_in("sampling.top_k", 0, INT32_MAX));
    chain.top_k = static_cast<std::uint32_t>(k);
  }
  const bool warm = config.at("sampling.temperature") != nullptr && chain.temperature > 0;
  CYB_ASSIGN(const std::string method,
             config.string_or("sampling.method", warm ? "chain" : "greedy"));
  CYB_TRY(apply_method(method, out));
  // An error here beats one at the first token.
  CYB_TRY(Sampler::create(chain, 1));
  return out;
}

namespace {

template <class T>
void take(const std::optional<T>& from, T& to) {
  if (from) to = *from;
}

/// A sampler that is switched on; values that mean "off", and those that only shape another
/// sampler, leave a greedy answer greedy.
bool asks_for_chance(const SamplingOverrides& o) noexcept {
  const auto above_zero = [](const auto& value) { return value && *value > 0; };
  const auto below_one = [](const auto& value) { return value && *value < 1; };
  return o.temperature || above_zero(o.top_k) || below_one(o.top_p) || above_zero(o.min_p) ||
         above_zero(o.temperature_range) || below_one(o.typical_p) || above_zero(o.top_n_sigma) ||
         above_zero(o.xtc_probability) || above_zero(o.mirostat_tau) || !o.order.empty();
}

void take_values(const SamplingOverrides& o, SamplingConfig& out) {
  take(o.temperature, out.temperature);
  take(o.temperature_range, out.temperature_range);
  take(o.temperature_exponent, out.temperature_exponent);
  take(o.top_k, out.top_k);
  take(o.top_p, out.top_p);
  take(o.min_p, out.min_p);
  take(o.typical_p, out.typical_p);
  take(o.top_n_sigma, out.top_n_sigma);
  take(o.xtc_probability, out.xtc_probability);
  take(o.xtc_threshold, out.xtc_threshold);
  take(o.repetition_penalty, out.repetition_penalty);
  take(o.presence_penalty, out.presence_penalty);
  take(o.frequency_penalty, out.frequency_penalty);
  take(o.penalty_last_n, out.penalty_last_n);
  take(o.dry_multiplier, out.dry_multiplier);
  take(o.dry_base, out.dry_base);
  take(o.dry_allowed_length, out.dry_allowed_length);
  take(o.dry_last_n, out.dry_last_n);
  take(o.mirostat_tau, out.mirostat_tau);
  take(o.mirostat_eta, out.mirostat_eta);
}

}  // namespace

Result<std::vector<SamplerKind>> parse_samplers(std::string_view list) {
  std::vector<SamplerKind> out;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    const std::string name(list.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
    const std::optional<SamplerKind> kind = find_sampler(name);
    if (!kind) {
      std::string all;
      for (const SamplerKind known : default_samplers())
        all += (all.empty() ? "" : ", ") + std::string(sampler_name(known));
      return fail(invalid_input("\"" + name + "\" is no sampler; there are " + all));
    }
    if (std::ranges::find(out, *kind) != out.end())
      return fail(invalid_input("the sampler " + name + " stands twice"));
    if (!out.empty() && out.back() == SamplerKind::kMirostat)
      return fail(invalid_input("mirostat draws the token, so it must be the last sampler"));
    out.push_back(*kind);
  }
  return out;
}

Result<void> check_overrides(const SamplingOverrides& o) {
  if (o.order.empty()) return {};
  const std::pair<SamplerKind, bool> given[] = {
      {SamplerKind::kPenalties,
       o.repetition_penalty || o.presence_penalty || o.frequency_penalty || o.penalty_last_n},
      {SamplerKind::kDry,
       o.dry_multiplier || o.dry_base || o.dry_allowed_length || o.dry_last_n || o.dry_breakers},
      {SamplerKind::kTemperature, o.temperature || o.temperature_range || o.temperature_exponent},
      {SamplerKind::kTopNSigma, o.top_n_sigma.has_value()},
      {SamplerKind::kTopK, o.top_k.has_value()},
      {SamplerKind::kTopP, o.top_p.has_value()},
      {SamplerKind::kMinP, o.min_p.has_value()},
      {SamplerKind::kTypical, o.typical_p.has_value()},
      {SamplerKind::kXtc, o.xtc_probability || o.xtc_threshold},
      {SamplerKind::kMirostat, o.mirostat_tau || o.mirostat_eta},
  };
  for (const auto& [kind, is_given] : given) {
    if (!is_given || std::ranges::find(o.order, kind) != o.order.end()) continue;
    return fail(invalid_input("a value of the sampler " + std::string(sampler_name(kind)) +
                              " is given, but the order of samplers does not list it"));
  }
  return {};
}

SamplingConfig resolve_sampling(const SamplingDefaults& defaults,
                                const SamplingOverrides& overrides, std::uint64_t seed) {
  SamplingConfig out = defaults.chain;
  const bool sampling = asks_for_chance(overrides);
  // A config that says temperature 0 has no temperature to sample with: the key's default.
  if (sampling && out.temperature == 0.0) out.temperature = 1.0;
  if (defaults.greedy && !sampling) out.temperature = 0.0;
  if (overrides.mirostat_tau && *overrides.mirostat_tau > 0) {
    out.top_k = 0;
    out.top_p = out.typical_p = 1.0;
    out.min_p = 0.0;
  }
  take_values(overrides, out);
  out.order = overrides.order;
  if (seed != 0) out.seed = seed;
  if (out.seed == 0) out.seed = system_seed();
  return out;
}

std::uint64_t system_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(seed))) {
    // Early boot: no entropy yet. A clock is good enough for sampling.
    seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  // 53 bits, so that every JSON reader gives the number back.
  seed &= (std::uint64_t{1} << 53) - 1;
  return seed == 0 ? 1 : seed;
}

}  // namespace cyb
