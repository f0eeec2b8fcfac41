// Frequency rules: linear, dynamic, llama3 (wavelength bands), yarn (Peng et al., arXiv
// 2309.00071), longrope (Ding et al., arXiv 2402.13753), table (factors stored in the file). f64
// throughout, rounded once.
#include "paths/curated/rope_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cyb {
namespace {

constexpr std::string_view kPath = "architecture.rope_scaling";

std::string key(std::string_view name) {
  return std::string(kPath) + "." + std::string(name);
}

Result<double> positive(const ConfigTable& config, std::string_view name) {
  CYB_ASSIGN(const double value, config.number(key(name)));
  if (!(value > 0))
    return fail(invalid_config("rope_scaling." + std::string(name), "must be above 0"));
  return value;
}

// Source: Llama 3.1's published rule; w = 2 pi / f is the wavelength in tokens.
Result<void> scale_llama3(const ConfigTable& config, std::vector<double>& f) {
  CYB_ASSIGN(const double factor, positive(config, "factor"));
  CYB_ASSIGN(const double low, positive(config, "low_freq_factor"));
  CYB_ASSIGN(const double high, positive(config, "high_freq_factor"));
  CYB_ASSIGN(const double original, positive(config, "original_max_position_embeddings"));
  if (!(high > low))
    return fail(invalid_config("rope_scaling.high_freq_factor", "must exceed low_freq_factor"));
  for (double& x : f) {
    const double wavelength = 2 * std::numbers::pi / x;
    if (wavelength < original / high) continue;
    if (wavelength > original / low) {
      x /= factor;
      continue;
    }
    const double s = (original / wavelength - low) / (high - low);
    x = (1 - s) * x / factor + s * x;
  }
  return {};
}

Result<void> scale_table(const TensorSource& tensors, std::vector<double>& f) {
  CYB_ASSIGN(const std::vector<float> factors, tensors.read_f32("cyb.pos.rope_factors"));
  if (factors.size() != f.size()) {
    return fail(shape_mismatch("Rope",
                               std::to_string(f.size()) + " factors in cyb.pos.rope_factors",
                               std::to_string(factors.size())));
  }
  for (std::size_t j = 0; j < f.size(); ++j) {
    if (!(factors[j] > 0)) return fail(invalid_config("cyb.pos.rope_factors", "must be above 0"));
    f[j] /= static_cast<double>(factors[j]);
  }
  return {};
}

Result<std::uint32_t> original_tokens(const ConfigTable& config) {
  CYB_ASSIGN(const std::int64_t value,
             config.integer_in(key("original_max_position_embeddings"), 1, std::int64_t{1} << 30));
  return static_cast<std::uint32_t>(value);
}

// Source: the paper's appendix A.2 as transformers computes it.
double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

Result<double> yarn_attention_factor(const ConfigTable& config, double factor) {
  if (config.at(key("attention_factor")) != nullptr) return positive(config, "attention_factor");
  CYB_ASSIGN(const double mscale, config.number_or(key("mscale"), 0.0));
  CYB_ASSIGN(const double all_dim, config.number_or(key("mscale_all_dim"), 0.0));
  if (mscale != 0 && all_dim != 0)
    return yarn_mscale(factor, mscale) / yarn_mscale(factor, all_dim);
  return yarn_mscale(factor, 1.0);
}

Result<void> scale_yarn(const ConfigTable& config, double theta, RopeScaling& out,
                        std::vector<double>& f) {
  CYB_ASSIGN(const double factor, positive(config, "factor"));
  CYB_ASSIGN(const double original, positive(config, "original_max_position_embeddings"));
  CYB_ASSIGN(const double fast, config.number_or(key("beta_fast"), 32.0));
  CYB_ASSIGN(const double slow, config.number_or(key("beta_slow"), 1.0));
  CYB_ASSIGN(const bool truncate, config.boolean_or(key("truncate"), true));
  CYB_ASSIGN(out.attention_factor, yarn_attention_factor(config, factor));
  if (!(fast > 0) || !(slow > 0) || theta == 1.0)
    return fail(invalid_config("rope_scaling.beta_fast", "must be above 0, as beta_slow"));
  const double dims = 2.0 * static_cast<double>(f.size());
  const auto dim_of = [&](double rotations) {
    return dims * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = dim_of(fast), high = dim_of(slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) high += 0.001;  // as transformers: no division by zero
  for (std::size_t j = 0; j < f.size(); ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    f[j] = f[j] / factor * ramp + f[j] * (1 - ramp);
  }
  return {};
}

Result<std::vector<float>> divided(const ConfigTable& config, std::string_view name,
                                   const std::vector<double>& f) {
  CYB_ASSIGN(const std::vector<double> factors, config.numbers_or_empty(key(name)));
  if (factors.size() != f.size()) {
    return fail(invalid_config(
        "rope_scaling." + std::string(name),
        "has " + std::to_string(factors.size()) + " factors, want " + std::to_string(f.size())));
  }
  std::vector<float> out;
  for (std::size_t j = 0; j < f.size(); ++j) {
    if (!(factors[j] > 0))
      return fail(invalid_config("rope_scaling." + std::string(name), "must be above 0"));
    out.push_back(static_cast<float>(f[j] / factors[j]));
  }
  return out;
}

Result<void> scale_longrope(const ConfigTable& config, const std::vector<double>& f,
                            RopeScaling& out) {
  CYB_ASSIGN(out.original_tokens, original_tokens(config));
  CYB_ASSIGN(out.attention_factor, positive(config, "attention_factor"));
  CYB_ASSIGN(out.frequencies, divided(config, "short_factor", f));
  CYB_ASSIGN(out.long_frequencies, divided(config, "long_factor", f));
  return {};
}

Result<void> scale_dynamic(const ConfigTable& config, std::size_t n, RopeScaling& out) {
  CYB_ASSIGN(out.original_tokens, original_tokens(config));
  CYB_ASSIGN(out.dynamic_factor, positive(config, "factor"));
  if (n < 2) return fail(invalid_config("rope_scaling.type", "dynamic needs a rope of 4 dims"));
  if (out.dynamic_factor < 1)
    return fail(invalid_config("rope_scaling.factor", "of type dynamic must be 1 or more"));
  out.dynamic = true;
  return {};
}

}  // namespace

Result<RopeScaling> read_rope_scaling(const ConfigTable& config, const TensorSource& tensors,
                                      double theta, std::uint32_t rope_dim) {
  RopeScaling out;
  if (config.at(kPath) == nullptr) return out;
  CYB_ASSIGN(const std::string type, config.string(key("type")));
  if (type == "default") return out;
  std::vector<double> f(rope_dim / 2);
  for (std::size_t j = 0; j < f.size(); ++j) {
    f[j] = std::pow(theta, -2.0 * static_cast<double>(j) / rope_dim);
  }
  if (type == "dynamic") {
    CYB_TRY(scale_dynamic(config, f.size(), out));
    return out;
  }
  if (type == "longrope") {
    CYB_TRY(scale_longrope(config, f, out));
    return out;
  }
  if (type == "linear") {
    CYB_ASSIGN(const double factor, positive(config, "factor"));
    for (double& x : f) x /= factor;
  } else if (type == "llama3") {
    CYB_TRY(scale_llama3(config, f));
  } else if (type == "yarn") {
    CYB_TRY(scale_yarn(config, theta, out, f));
  } else if (type == "table") {
    CYB_TRY(scale_table(tensors, f));
    out.from_table = true;
  } else {
    return fail(invalid_config(
        "rope_scaling.type",
        "\"" + type + "\" is not known (linear, dynamic, yarn, longrope, llama3, table are)"));
  }
  out.frequencies.assign(f.begin(), f.end());
  return out;
}

}  // namespace cyb
