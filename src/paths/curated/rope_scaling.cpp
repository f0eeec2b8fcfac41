// Frequency rules: linear, llama3 (wavelength bands), table (factors stored in the file). f64
// throughout, rounded once.
#include "paths/curated/rope_scaling.hpp"

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

}  // namespace

Result<std::vector<float>> scaled_rope_frequencies(const ConfigTable& config,
                                                   const TensorSource& tensors, double theta,
                                                   std::uint32_t rope_dim) {
  if (config.at(kPath) == nullptr) return std::vector<float>{};
  CYB_ASSIGN(const std::string type, config.string(key("type")));
  if (type == "default") return std::vector<float>{};
  std::vector<double> f(rope_dim / 2);
  for (std::size_t j = 0; j < f.size(); ++j) {
    f[j] = std::pow(theta, -2.0 * static_cast<double>(j) / rope_dim);
  }
  if (type == "linear") {
    CYB_ASSIGN(const double factor, positive(config, "factor"));
    for (double& x : f) x /= factor;
  } else if (type == "llama3") {
    CYB_TRY(scale_llama3(config, f));
  } else if (type == "table") {
    CYB_TRY(scale_table(tensors, f));
  } else {
    return fail(invalid_config("rope_scaling.type",
                               "\"" + type + "\" is not built yet (linear, llama3, table are)"));
  }
  return std::vector<float>(f.begin(), f.end());
}

}  // namespace cyb
