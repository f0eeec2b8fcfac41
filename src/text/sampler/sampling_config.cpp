// Names, ranges and order of the samplers.
#include "text/sampler/sampling_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace cyb {
namespace {

constexpr std::array<SamplerKind, kNumSamplers> kDefaultOrder = {
    SamplerKind::kPenalties, SamplerKind::kDry,     SamplerKind::kTemperature,
    SamplerKind::kTopNSigma, SamplerKind::kTopK,    SamplerKind::kTopP,
    SamplerKind::kMinP,      SamplerKind::kTypical, SamplerKind::kXtc,
    SamplerKind::kMirostat};
constexpr std::array<std::string_view, kNumSamplers> kNames = {
    "penalties", "dry",   "temperature", "top_n_sigma", "top_k",
    "top_p",     "min_p", "typical",     "xtc",         "mirostat"};

Result<void> check(bool good, std::string_view key, std::string_view rule) {
  if (good) return {};
  return fail(invalid_config(fmt::format("sampling.{}", key), rule));
}

bool in(double value, double min, double max) noexcept {
  return value >= min && value <= max;  // false for NaN
}

constexpr double kHuge = 1e9;

Result<void> check_filters(const SamplingConfig& c) {
  CYB_TRY(check(std::isfinite(c.temperature) && c.temperature >= 0, "temperature", "must be >= 0"));
  CYB_TRY(check(in(c.temperature_range, 0, kHuge), "temperature_range", "must be >= 0"));
  CYB_TRY(check(in(c.temperature_exponent, 0, kHuge) && c.temperature_exponent > 0,
                "temperature_exponent", "must be > 0"));
  CYB_TRY(check(c.top_p > 0 && c.top_p <= 1, "top_p", "must be in (0, 1]"));
  CYB_TRY(check(c.min_p >= 0 && c.min_p < 1, "min_p", "must be in [0, 1)"));
  CYB_TRY(check(c.typical_p > 0 && c.typical_p <= 1, "typical_p", "must be in (0, 1]"));
  CYB_TRY(check(in(c.top_n_sigma, 0, kHuge), "top_n_sigma", "must be >= 0"));
  CYB_TRY(check(in(c.xtc_probability, 0, 1), "xtc_probability", "must be in [0, 1]"));
  CYB_TRY(check(in(c.xtc_threshold, 0, 1), "xtc_threshold", "must be in [0, 1]"));
  CYB_TRY(check(in(c.mirostat_tau, 0, kHuge), "mirostat_tau", "must be >= 0"));
  return check(in(c.mirostat_eta, 0, kHuge) && c.mirostat_eta > 0, "mirostat_eta", "must be > 0");
}

Result<void> check_penalties(const SamplingConfig& c) {
  CYB_TRY(check(std::isfinite(c.repetition_penalty) && c.repetition_penalty > 0,
                "repetition_penalty", "must be > 0"));
  CYB_TRY(check(in(c.presence_penalty, -kHuge, kHuge), "presence_penalty", "must be finite"));
  CYB_TRY(check(in(c.frequency_penalty, -kHuge, kHuge), "frequency_penalty", "must be finite"));
  CYB_TRY(check(in(c.dry_multiplier, 0, kHuge), "dry_multiplier", "must be >= 0"));
  CYB_TRY(check(in(c.dry_base, 1, kHuge), "dry_base", "must be >= 1"));
  CYB_TRY(check(c.dry_allowed_length >= 1, "dry_allowed_length", "must be >= 1"));
  for (const LogitBias& bias : c.logit_bias) {
    // Minus infinity is a ban; more than f32 holds would be one by accident.
    const bool good = in(bias.bias, -kHuge, kHuge) || (std::isinf(bias.bias) && bias.bias < 0);
    CYB_TRY(check(good, "logit_bias", "must be finite or -inf"));
  }
  return {};
}

bool acts(const SamplingConfig& c, SamplerKind kind) noexcept {
  switch (kind) {
    case SamplerKind::kPenalties:
      return c.repetition_penalty != 1.0 || c.presence_penalty != 0.0 || c.frequency_penalty != 0.0;
    case SamplerKind::kDry:
      return c.dry_multiplier > 0.0;
    case SamplerKind::kTemperature:
      return true;
    case SamplerKind::kTopNSigma:
      return c.top_n_sigma > 0.0;
    case SamplerKind::kTopK:
      return c.top_k > 0;
    case SamplerKind::kTopP:
      return c.top_p < 1.0;
    case SamplerKind::kMinP:
      return c.min_p > 0.0;
    case SamplerKind::kTypical:
      return c.typical_p < 1.0;
    case SamplerKind::kXtc:
      return c.xtc_probability > 0.0 && c.xtc_threshold <= 0.5;
    case SamplerKind::kMirostat:
      return c.mirostat_tau > 0.0;
  }
  return false;
}

}  // namespace

std::string_view sampler_name(SamplerKind kind) noexcept {
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<SamplerKind> find_sampler(std::string_view name) noexcept {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<SamplerKind>(found - kNames.begin());
}

std::span<const SamplerKind> default_samplers() noexcept {
  return kDefaultOrder;
}

Result<void> check_sampling(const SamplingConfig& config) {
  CYB_TRY(check_filters(config));
  CYB_TRY(check_penalties(config));
  for (std::size_t i = 0; i < config.order.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CYB_TRY(check(config.order[i] != config.order[j], "samplers",
                    fmt::format("{} stands twice", sampler_name(config.order[i]))));
    }
    const bool last = i + 1 == config.order.size();
    CYB_TRY(check(last || config.order[i] != SamplerKind::kMirostat, "samplers",
                  "mirostat draws the token: it must be the last"));
  }
  return {};
}

std::vector<SamplerKind> active_samplers(const SamplingConfig& config) {
  std::vector<SamplerKind> out(config.order);
  if (out.empty()) out.assign(kDefaultOrder.begin(), kDefaultOrder.end());
  std::erase_if(out, [&](SamplerKind kind) { return !acts(config, kind); });
  return out;
}

bool is_plain_chain(const SamplingConfig& c) {
  if (!c.logit_bias.empty() || c.penalty_last_n != 0 || c.temperature_range > 0.0) return false;
  if (c.presence_penalty != 0.0 || c.frequency_penalty != 0.0) return false;
  const std::vector<SamplerKind> active = active_samplers(c);
  const bool warm = std::ranges::find(active, SamplerKind::kTemperature) != active.end();
  if (!warm && c.temperature != 0.0) return false;  // a chain that lists no temperature has 1
  return std::ranges::is_sorted(active) && std::ranges::all_of(active, [](SamplerKind kind) {
           return kind == SamplerKind::kPenalties || kind == SamplerKind::kTemperature ||
                  kind == SamplerKind::kTopK || kind == SamplerKind::kTopP ||
                  kind == SamplerKind::kMinP;
         });
}

}  // namespace cyb
