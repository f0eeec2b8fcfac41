// Rope of GGUF files: theta, partial rotation, linear, yarn, longrope and stored factors.
#include <cmath>

#include "base/json_text.hpp"
#include "import/gguf/keys.hpp"

namespace cyb::gguf {
namespace {

ConfigArray as_array(const std::vector<float>& values) {
  ConfigArray out;
  for (const float value : values) out.emplace_back(double{value});
  return out;
}

/// Factors in tensors; the length decides which set holds.
Result<void> read_longrope(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c) {
  CYB_ASSIGN(const std::int64_t original,
             keys.integer("rope.scaling.original_context_length", {2, std::int64_t{1} << 30}));
  const auto n = static_cast<std::size_t>((c.rope_dim != 0 ? c.rope_dim : c.head_dim) / 2);
  if (facts.short_factors.size() != n || facts.long_factors.size() != n) {
    return keys.refuse("rope.scaling.type",
                       fmt::format("longrope needs rope_factors_short.weight and "
                                   "rope_factors_long.weight of {} values",
                                   n));
  }
  const double scale = static_cast<double>(c.max_positions) / static_cast<double>(original);
  const double implied =
      scale <= 1 ? 1.0 : std::sqrt(1 + std::log(scale) / std::log(static_cast<double>(original)));
  CYB_ASSIGN(const double attention, keys.number_or("rope.scaling.attn_factor", implied));
  if (!(attention > 0)) return keys.refuse("rope.scaling.attn_factor", "must be above 0");
  ConfigTable scaling;
  scaling.set("type", "longrope");
  scaling.set("original_max_position_embeddings", original);
  scaling.set("attention_factor", attention);
  scaling.set("short_factor", as_array(facts.short_factors));
  scaling.set("long_factor", as_array(facts.long_factors));
  c.rope_scaling = std::move(scaling);
  return {};
}

Result<void> read_yarn(Keys& keys, double factor, const TensorFacts& facts, LlamaStyleConfig& c) {
  if (facts.has_rope_factors)
    return keys.refuse("rope.scaling.type", "yarn together with rope_freqs.weight");
  if (!(factor > 0)) return keys.refuse("rope.scaling.factor", "must be above 0");
  CYB_ASSIGN(const std::int64_t original,
             keys.get().integer_or(keys.name("rope.scaling.original_context_length"),
                                   c.max_positions, {1, std::int64_t{1} << 30}));
  CYB_ASSIGN(const double extrapolation, keys.number_or("rope.scaling.yarn_ext_factor", 1.0));
  if (extrapolation != 1.0)
    return keys.refuse("rope.scaling.yarn_ext_factor", "other than 1 is not built");
  ConfigTable scaling;
  scaling.set("type", "yarn");
  scaling.set("factor", factor);
  scaling.set("original_max_position_embeddings", original);
  for (const auto& [suffix, key] :
       {std::pair{"rope.scaling.yarn_beta_fast", "beta_fast"},
        std::pair{"rope.scaling.yarn_beta_slow", "beta_slow"},
        std::pair{"rope.scaling.yarn_attn_factor", "attention_factor"}}) {
    if (!keys.has(suffix)) continue;
    CYB_ASSIGN(const double value, keys.number_or(suffix, 0.0));
    if (!(value > 0)) return keys.refuse(suffix, "must be above 0");
    scaling.set(key, value);
  }
  c.rope_scaling = std::move(scaling);
  return {};
}

Result<void> read_rope_scaling(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c) {
  CYB_ASSIGN(const double legacy, keys.number_or("rope.scale_linear", 1.0));
  CYB_ASSIGN(const double factor, keys.number_or("rope.scaling.factor", legacy));
  const std::string_view implied =
      factor != 1.0 && factor != 0.0 ? "linear" : "none";  // llama.cpp: linear is the default
  CYB_ASSIGN(const std::string_view type,
             keys.get().text_or(keys.name("rope.scaling.type"), implied));
  if (!facts.long_factors.empty() || type == "longrope") return read_longrope(keys, facts, c);
  if (type == "yarn") return read_yarn(keys, factor, facts, c);
  if (type != "none" && type != "linear") {
    return keys.refuse(
        "rope.scaling.type",
        fmt::format("{} is not known (known: none, linear, yarn, longrope)", json_quote(type)));
  }
  if (type == "linear" && !(factor > 0))
    return keys.refuse("rope.scaling.factor", "must be above 0");
  if (facts.has_rope_factors) {
    if (type == "linear" && factor != 1.0)
      return keys.refuse("rope.scaling.type", "linear together with rope_freqs.weight");
    ConfigTable scaling;
    scaling.set("type", "table");
    c.rope_scaling = std::move(scaling);
  } else if (type == "linear" && factor != 1.0) {
    ConfigTable scaling;
    scaling.set("type", "linear");
    scaling.set("factor", factor);
    c.rope_scaling = std::move(scaling);
  }
  return {};
}

}  // namespace

Result<void> read_rope(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c,
                       ImportReport& report) {
  CYB_ASSIGN(c.rope_theta, keys.number_or("rope.freq_base", 10000.0));
  if (!(c.rope_theta > 0)) return keys.refuse("rope.freq_base", "must be above 0");
  if (!keys.has("rope.freq_base"))
    report.assumptions.emplace_back("rope theta is 10000 (the file does not say)");
  if (keys.has("rope.dimension_count")) {
    CYB_ASSIGN(const std::int64_t dims, keys.integer("rope.dimension_count", {2, c.head_dim}));
    if (dims % 2 != 0) return keys.refuse("rope.dimension_count", "is odd");
    c.rope_dim = dims;
    c.partial_rotary_factor = static_cast<double>(dims) / static_cast<double>(c.head_dim);
  }
  return read_rope_scaling(keys, facts, c);
}

}  // namespace cyb::gguf
