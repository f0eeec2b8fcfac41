// Methods of spec ir.md section 5.8: 1..4 are the chain with the other filters off.
#include "runtime/sampling.hpp"

#include <sys/random.h>

#include <chrono>
#include <string>

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

SamplingConfig resolve_sampling(const SamplingDefaults& defaults,
                                const SamplingOverrides& overrides, std::uint64_t seed) {
  SamplingConfig out = defaults.chain;
  const bool sampling =
      overrides.temperature || overrides.top_k || overrides.top_p || overrides.min_p;
  // A config that says temperature 0 has no temperature to sample with: the key's default.
  if (sampling && out.temperature == 0.0) out.temperature = 1.0;
  if (defaults.greedy && !sampling) out.temperature = 0.0;
  if (overrides.temperature) out.temperature = *overrides.temperature;
  if (overrides.top_k) out.top_k = *overrides.top_k;
  if (overrides.top_p) out.top_p = *overrides.top_p;
  if (overrides.min_p) out.min_p = *overrides.min_p;
  if (overrides.repetition_penalty) out.repetition_penalty = *overrides.repetition_penalty;
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
