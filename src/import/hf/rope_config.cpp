// Follows transformers 5: `rope_scaling`, where given, takes the place of `rope_parameters`; a type
// is `rope_type` or `type`.
#include "import/hf/rope_config.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace cyb::hf {
namespace {

constexpr double kDefaultTheta = 10000.0;

struct Rope {
  double theta = kDefaultTheta;
  std::optional<ConfigTable> scaling;
};

Result<double> positive(ConfigReader& reader, std::string_view key) {
  CYB_ASSIGN(const std::optional<double> value, reader.number(key));
  if (!value) return reader.refuse(key, "is missing");
  if (!(*value > 0)) return reader.refuse(key, "must be above 0");
  return *value;
}

/// Where the type needs the trained length and the table lacks it, transformers takes
/// max_position_embeddings.
Result<std::int64_t> original_length(ConfigReader& table, std::optional<std::int64_t> outer,
                                     const LlamaStyleConfig& out, ImportReport& report) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  CYB_ASSIGN(const std::optional<std::int64_t> stated,
             table.integer(kKey, 1, std::int64_t{1} << 30));
  if (outer) return *outer;
  if (stated) return *stated;
  report.assumptions.push_back(
      fmt::format("{} is {} (max_position_embeddings)", table.shown(kKey), out.max_positions));
  return out.max_positions;
}

Result<std::optional<ConfigTable>> read_scaling(ConfigReader& table, std::string_view type,
                                                std::optional<std::int64_t> outer_length,
                                                const LlamaStyleConfig& out, ImportReport& report) {
  ConfigTable scaling;
  scaling.set("type", std::string(type));
  if (type == "linear" || type == "llama3") {
    CYB_ASSIGN(const double factor, positive(table, "factor"));
    scaling.set("factor", factor);
  }
  if (type == "llama3") {
    CYB_ASSIGN(const double low, positive(table, "low_freq_factor"));
    CYB_ASSIGN(const double high, positive(table, "high_freq_factor"));
    if (!(high > low)) return table.refuse("high_freq_factor", "must be above low_freq_factor");
    CYB_ASSIGN(const std::int64_t length, original_length(table, outer_length, out, report));
    scaling.set("low_freq_factor", low);
    scaling.set("high_freq_factor", high);
    scaling.set("original_max_position_embeddings", length);
  }
  return std::optional(std::move(scaling));
}

/// One rope table. `object` null: default type. Theta inside the table wins over `theta`.
Result<Rope> read_table(const nlohmann::json* object, const std::string& name, double theta,
                        std::optional<std::int64_t> outer_length, const LlamaStyleConfig& out,
                        ImportReport& report) {
  Rope rope;
  rope.theta = theta;
  if (object == nullptr) return rope;
  if (!object->is_object()) return fail(invalid_config(name, "is not an object"));
  ConfigReader table(*object, name + ".");
  CYB_ASSIGN(const std::optional<double> own_theta, table.number("rope_theta"));
  rope.theta = own_theta.value_or(theta);
  CYB_ASSIGN(const std::optional<std::string> new_type, table.text("rope_type"));
  CYB_ASSIGN(const std::optional<std::string> old_type, table.text("type"));
  const std::string type = new_type ? *new_type : old_type.value_or("default");
  if (type != "default" && type != "linear" && type != "llama3") {
    return table.refuse(
        new_type ? "rope_type" : "type",
        fmt::format("{} is not built yet (built: default, linear, llama3)", json_quote(type)));
  }
  if (type != "default") {
    CYB_ASSIGN(rope.scaling, read_scaling(table, type, outer_length, out, report));
  }
  CYB_ASSIGN(const std::optional<double> partial, table.number("partial_rotary_factor"));
  if (partial.value_or(1.0) != 1.0)
    return table.refuse("partial_rotary_factor", "is not built for this family");
  if (type != "llama3") table.ignore("original_max_position_embeddings");
  const std::vector<std::string> left = table.unread();
  if (!left.empty())
    return table.refuse(left[0], fmt::format("is not part of rope type {}", json_quote(type)));
  return rope;
}

Result<std::optional<std::int64_t>> outer_original_length(ConfigReader& config) {
  return config.integer("original_max_position_embeddings", 1, std::int64_t{1} << 30);
}

Result<void> check_theta(double theta, std::string_view key) {
  if (theta > 0) return {};
  return fail(invalid_config(key, fmt::format("{} must be above 0", theta)));
}

}  // namespace

Result<void> read_rope(ConfigReader& config, LlamaStyleConfig& out, ImportReport& report) {
  const nlohmann::json* scaling = config.find("rope_scaling");
  const nlohmann::json* parameters = config.find("rope_parameters");
  const bool use_scaling = scaling != nullptr && !scaling->empty();
  CYB_ASSIGN(const std::optional<double> theta, config.number("rope_theta"));
  CYB_ASSIGN(const std::optional<double> partial, config.number("partial_rotary_factor"));
  if (partial.value_or(1.0) != 1.0)
    return config.refuse("partial_rotary_factor", "is not built for this family");
  CYB_ASSIGN(const std::optional<std::int64_t> length, outer_original_length(config));
  const std::string name = config.shown(use_scaling ? "rope_scaling" : "rope_parameters");
  CYB_ASSIGN(Rope rope, read_table(use_scaling ? scaling : parameters, name,
                                   theta.value_or(kDefaultTheta), length, out, report));
  CYB_TRY(check_theta(rope.theta, config.shown("rope_theta")));
  out.rope_theta = rope.theta;
  out.rope_scaling = std::move(rope.scaling);
  return {};
}

Result<void> read_rope_per_kind(ConfigReader& config, LlamaStyleConfig& out, ImportReport& report) {
  constexpr double kGlobalTheta = 1e6, kLocalTheta = 1e4;  // Gemma3TextConfig.default_theta
  const nlohmann::json* scaling = config.find("rope_scaling");
  const nlohmann::json* parameters = config.find("rope_parameters");
  CYB_ASSIGN(const std::optional<double> theta, config.number("rope_theta"));
  CYB_ASSIGN(const std::optional<double> local, config.number("rope_local_base_freq"));
  CYB_ASSIGN(const std::optional<std::int64_t> length, outer_original_length(config));
  const nlohmann::json* full = scaling;
  const nlohmann::json* sliding = nullptr;
  std::string name = config.shown("rope_scaling");
  if (parameters != nullptr) {
    if (!parameters->is_object()) return config.refuse("rope_parameters", "is not an object");
    if (scaling != nullptr && !scaling->empty())
      return config.refuse("rope_scaling", "stands beside rope_parameters");
    name = config.shown("rope_parameters");
    ConfigReader kinds(*parameters, name + ".");
    full = kinds.find("full_attention");
    sliding = kinds.find("sliding_attention");
    const std::vector<std::string> left = kinds.unread();
    if (!left.empty())
      return kinds.refuse(left[0], "is no layer kind (full_attention, sliding_attention)");
  }
  CYB_ASSIGN(Rope whole, read_table(full, name + ".full_attention", theta.value_or(kGlobalTheta),
                                    length, out, report));
  CYB_ASSIGN(const Rope window, read_table(sliding, name + ".sliding_attention",
                                           local.value_or(kLocalTheta), length, out, report));
  if (window.scaling)
    return config.refuse("rope_parameters", "scales the sliding layers, which is not built yet");
  CYB_TRY(check_theta(whole.theta, config.shown("rope_theta")));
  CYB_TRY(check_theta(window.theta, config.shown("rope_local_base_freq")));
  out.rope_theta = whole.theta;
  out.rope_theta_sliding = window.theta;
  out.rope_scaling = std::move(whole.scaling);
  return {};
}

}  // namespace cyb::hf
