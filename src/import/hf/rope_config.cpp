// Follows transformers 5: `rope_scaling`, where given, takes the place of `rope_parameters`; a type
// is `rope_type` or `type`.
#include "import/hf/rope_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace cyb::hf {
namespace {

constexpr double kDefaultTheta = 10000.0;

struct Rope {
  double theta = kDefaultTheta, partial = 1.0;
  std::optional<ConfigTable> scaling;
};

Result<double> positive(ConfigReader& reader, std::string_view key) {
  CYB_ASSIGN(const std::optional<double> value, reader.number(key));
  if (!value) return reader.refuse(key, "is missing");
  if (!(*value > 0)) return reader.refuse(key, "must be above 0");
  return *value;
}

/// What the classes give to every rope table beside it.
struct Outer {
  double theta = kDefaultTheta, partial = 1.0;
  bool any_partial = false;
  std::optional<std::int64_t> original_tokens;  // original_max_position_embeddings
  bool su_is_longrope = false;                  // Phi-3's first names of longrope
};

/// Where the type needs the trained length and the table lacks it, transformers takes
/// max_position_embeddings.
Result<std::int64_t> original_length(ConfigReader& table, const Outer& outer,
                                     const LlamaStyleConfig& out, ImportReport& report) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  CYB_ASSIGN(const std::optional<std::int64_t> stated,
             table.integer(kKey, 1, std::int64_t{1} << 30));
  if (outer.original_tokens) return *outer.original_tokens;
  if (stated) return *stated;
  report.assumptions.push_back(
      fmt::format("{} is {} (max_position_embeddings)", table.shown(kKey), out.max_positions));
  return out.max_positions;
}

/// `factor`; where it is missing, max_position_embeddings over the original length.
Result<double> factor_or_ratio(ConfigReader& table, std::int64_t original,
                               const LlamaStyleConfig& out) {
  CYB_ASSIGN(const std::optional<double> stated, table.number("factor"));
  const double factor =
      stated.value_or(static_cast<double>(out.max_positions) / static_cast<double>(original));
  if (!(factor > 0)) return table.refuse("factor", "must be above 0");
  return factor;
}

Result<void> read_llama3(ConfigReader& table, const Outer& outer, const LlamaStyleConfig& out,
                         ImportReport& report, ConfigTable& scaling) {
  CYB_ASSIGN(const double low, positive(table, "low_freq_factor"));
  CYB_ASSIGN(const double high, positive(table, "high_freq_factor"));
  if (!(high > low)) return table.refuse("high_freq_factor", "must be above low_freq_factor");
  CYB_ASSIGN(const std::int64_t length, original_length(table, outer, out, report));
  scaling.set("low_freq_factor", low);
  scaling.set("high_freq_factor", high);
  scaling.set("original_max_position_embeddings", length);
  return {};
}

Result<void> read_yarn(ConfigReader& table, const Outer& outer, const LlamaStyleConfig& out,
                       ImportReport& report, ConfigTable& scaling) {
  CYB_ASSIGN(const std::int64_t length, original_length(table, outer, out, report));
  CYB_ASSIGN(const double factor, factor_or_ratio(table, length, out));
  scaling.set("factor", factor);
  scaling.set("original_max_position_embeddings", length);
  for (const char* key : {"beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
    CYB_ASSIGN(const std::optional<double> value, table.number(key));
    if (value.value_or(0) < 0) return table.refuse(key, "must not be negative");
    if (value.value_or(0) != 0) scaling.set(key, *value);  // 0 counts as absent there
  }
  CYB_ASSIGN(const std::optional<double> attention, table.number("attention_factor"));
  if (attention && !(*attention > 0)) return table.refuse("attention_factor", "must be above 0");
  if (attention) scaling.set("attention_factor", *attention);
  CYB_ASSIGN(const std::optional<bool> truncate, table.boolean("truncate"));
  if (truncate) scaling.set("truncate", *truncate);
  table.ignore("finetuned");
  return {};
}

Result<ConfigArray> factors(ConfigReader& table, std::string_view key) {
  const nlohmann::json* list = table.find(key);
  if (list == nullptr || !list->is_array()) return table.refuse(key, "is no list of numbers");
  ConfigArray out;
  for (const nlohmann::json& item : *list) {
    if (!item.is_number() || !(item.get<double>() > 0))
      return table.refuse(key, fmt::format("{} is no number above 0", json_excerpt(item)));
    out.emplace_back(item.get<double>());
  }
  return out;
}

Result<void> read_longrope(ConfigReader& table, const Outer& outer, const LlamaStyleConfig& out,
                           ImportReport& report, ConfigTable& scaling) {
  CYB_ASSIGN(const std::int64_t length, original_length(table, outer, out, report));
  CYB_ASSIGN(const double factor, factor_or_ratio(table, length, out));
  CYB_ASSIGN(ConfigArray shorter, factors(table, "short_factor"));
  CYB_ASSIGN(ConfigArray longer, factors(table, "long_factor"));
  CYB_ASSIGN(const std::optional<double> stated, table.number("attention_factor"));
  if (stated && !(*stated > 0)) return table.refuse("attention_factor", "must be above 0");
  const double implied =
      factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(length)));
  scaling.set("original_max_position_embeddings", length);
  scaling.set("attention_factor", stated.value_or(implied));
  scaling.set("short_factor", std::move(shorter));
  scaling.set("long_factor", std::move(longer));
  return {};
}

/// transformers counts from the length that the checkpoint states, which the factor lengthens.
Result<void> read_dynamic(ConfigReader& table, LlamaStyleConfig& out, ConfigTable& scaling) {
  CYB_ASSIGN(const double factor, positive(table, "factor"));
  if (factor < 1) return table.refuse("factor", "must be 1 or more");
  const double longest = std::floor(factor * static_cast<double>(out.max_positions));
  if (longest > 0x1p30) return table.refuse("factor", "lengthens the context above 2^30");
  scaling.set("factor", factor);
  scaling.set("original_max_position_embeddings", out.max_positions);
  out.max_positions = static_cast<std::int64_t>(longest);
  return {};
}

Result<ConfigTable> read_scaling(ConfigReader& table, std::string_view type, const Outer& outer,
                                 LlamaStyleConfig& out, ImportReport& report) {
  ConfigTable scaling;
  scaling.set("type", std::string(type));
  if (type == "linear" || type == "llama3") {
    CYB_ASSIGN(const double factor, positive(table, "factor"));
    scaling.set("factor", factor);
  }
  if (type == "llama3") CYB_TRY(read_llama3(table, outer, out, report, scaling));
  if (type == "yarn") CYB_TRY(read_yarn(table, outer, out, report, scaling));
  if (type == "longrope") CYB_TRY(read_longrope(table, outer, out, report, scaling));
  if (type == "dynamic") CYB_TRY(read_dynamic(table, out, scaling));
  if (type == "linear" || type == "dynamic") table.ignore("original_max_position_embeddings");
  return scaling;
}

/// `rope_type`, or `type` in older files.
Result<std::string> read_type(ConfigReader& table, bool su_is_longrope) {
  CYB_ASSIGN(const std::optional<std::string> new_type, table.text("rope_type"));
  CYB_ASSIGN(const std::optional<std::string> old_type, table.text("type"));
  std::string type = new_type ? *new_type : old_type.value_or("default");
  if (su_is_longrope && (type == "su" || type == "yarn")) type = "longrope";
  constexpr std::array kKnown = {"default", "linear", "dynamic", "yarn", "longrope", "llama3"};
  if (std::ranges::count(kKnown, type) != 0) return type;
  return table.refuse(
      new_type ? "rope_type" : "type",
      fmt::format("{} is not known (known: {})", json_quote(type), fmt::join(kKnown, ", ")));
}

/// One rope table. `object` null: default type. What stands inside the table wins over `outer`.
Result<Rope> read_table(const nlohmann::json* object, const std::string& name, const Outer& outer,
                        LlamaStyleConfig& out, ImportReport& report) {
  Rope rope;
  rope.theta = outer.theta;
  rope.partial = outer.partial;
  if (object == nullptr) return rope;
  if (!object->is_object()) return fail(invalid_config(name, "is not an object"));
  ConfigReader table(*object, name + ".");
  CYB_ASSIGN(const std::optional<double> own_theta, table.number("rope_theta"));
  rope.theta = own_theta.value_or(outer.theta);
  CYB_ASSIGN(const std::string type, read_type(table, outer.su_is_longrope));
  if (type != "default") {
    CYB_ASSIGN(rope.scaling, read_scaling(table, type, outer, out, report));
  } else {
    table.ignore("original_max_position_embeddings");
  }
  CYB_ASSIGN(const std::optional<double> partial, table.number("partial_rotary_factor"));
  if (!outer.any_partial && partial.value_or(1.0) != 1.0)
    return table.refuse("partial_rotary_factor", "is not built for this family");
  rope.partial = partial.value_or(outer.partial);
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

Result<void> read_rope(ConfigReader& config, const ModelType& model, LlamaStyleConfig& out,
                       ImportReport& report) {
  const nlohmann::json* scaling = config.find("rope_scaling");
  const nlohmann::json* parameters = config.find("rope_parameters");
  const bool use_scaling = scaling != nullptr && !scaling->empty();
  CYB_ASSIGN(const std::optional<double> theta, config.number("rope_theta"));
  CYB_ASSIGN(const std::optional<double> partial, config.number("partial_rotary_factor"));
  if (!model.any_partial && partial.value_or(1.0) != 1.0)
    return config.refuse("partial_rotary_factor", "is not built for this family");
  Outer outer{.theta = theta.value_or(model.theta),
              .partial = partial.value_or(model.partial),
              .any_partial = model.any_partial,
              .original_tokens = {},
              .su_is_longrope = model.kind == Kind::kPhi3};
  CYB_ASSIGN(outer.original_tokens, outer_original_length(config));
  if (model.kind == Kind::kPhi3 && !outer.original_tokens) outer.original_tokens = 4096;
  const std::string name = config.shown(use_scaling ? "rope_scaling" : "rope_parameters");
  CYB_ASSIGN(Rope rope, read_table(use_scaling ? scaling : parameters, name, outer, out, report));
  CYB_TRY(check_theta(rope.theta, config.shown("rope_theta")));
  if (!(rope.partial > 0 && rope.partial <= 1))
    return config.refuse("partial_rotary_factor", "is out of range: (0, 1]");
  out.rope_theta = rope.theta;
  out.partial_rotary_factor = rope.partial;
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
  Outer outer{.theta = theta.value_or(kGlobalTheta), .original_tokens = length};
  CYB_ASSIGN(Rope whole, read_table(full, name + ".full_attention", outer, out, report));
  outer.theta = local.value_or(kLocalTheta);
  CYB_ASSIGN(const Rope window,
             read_table(sliding, name + ".sliding_attention", outer, out, report));
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
