// Which layers slide and which have no rope, as the classes of transformers decide it.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "import/hf/config_parts.hpp"

namespace cyb::hf {
namespace {

constexpr std::int64_t kMaxLayers = 1 << 16, kMaxPositions = std::int64_t{1} << 30;

/// layer_types as sliding flags; empty when absent.
Result<std::vector<bool>> read_layer_types(ConfigReader& config, std::int64_t n_layers) {
  CYB_ASSIGN(const std::vector<std::string> types, config.texts_or_empty("layer_types"));
  std::vector<bool> out;
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return config.refuse("layer_types", fmt::format("{} is not built yet", json_quote(type)));
    }
    out.push_back(type == "sliding_attention");
  }
  if (!out.empty() && static_cast<std::int64_t>(out.size()) != n_layers) {
    return config.refuse("layer_types",
                         fmt::format("has {} entries for {} layers", out.size(), n_layers));
  }
  return out;
}

/// Where the key is absent the class's default holds; JSON null means none.
Result<std::int64_t> read_window_size(ConfigReader& config, std::int64_t fallback) {
  const bool stated = config.has("sliding_window");
  CYB_ASSIGN(const std::optional<std::int64_t> window,
             config.integer("sliding_window", 1, kMaxPositions));
  if (window) return *window;
  return stated ? 0 : fallback;
}

Result<void> read_qwen_layers(ConfigReader& config, LlamaStyleConfig& c) {
  CYB_ASSIGN(const std::optional<bool> use, config.boolean("use_sliding_window"));
  if (!use.value_or(false)) c.sliding_window = 0;
  CYB_ASSIGN(const std::optional<std::int64_t> first,
             config.integer("max_window_layers", 0, kMaxLayers));
  if (!c.sliding_layers.empty()) return {};
  for (std::int64_t i = 0; i < c.n_layers; ++i)
    c.sliding_layers.push_back(c.sliding_window > 0 && i >= first.value_or(28));
  return {};
}

/// SmolLM3: `no_rope_layers` has 1 where rope is used; layers without rope may slide.
Result<void> read_no_rope_layers(ConfigReader& config, LlamaStyleConfig& c) {
  constexpr const char* kKey = "no_rope_layers";
  const bool stated = config.has(kKey);
  CYB_ASSIGN(const std::vector<std::int64_t> flags, config.ids(kKey));
  CYB_ASSIGN(const std::optional<std::int64_t> interval,
             config.integer("no_rope_layer_interval", 1, kMaxLayers));
  if (stated && !flags.empty() && static_cast<std::int64_t>(flags.size()) != c.n_layers) {
    return config.refuse(kKey,
                         fmt::format("has {} entries for {} layers", flags.size(), c.n_layers));
  }
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const bool rope = flags.empty() ? (i + 1) % interval.value_or(4) != 0
                                    : flags[static_cast<std::size_t>(i)] != 0;
    c.rope_layers.push_back(rope);
  }
  CYB_ASSIGN(const std::optional<bool> use, config.boolean("use_sliding_window"));
  if (!use.value_or(false)) {
    c.sliding_window = 0;
    c.sliding_layers.assign(static_cast<std::size_t>(c.n_layers), false);
  }
  if (!c.sliding_layers.empty()) return {};
  for (std::int64_t i = 0; i < c.n_layers; ++i)
    c.sliding_layers.push_back(c.sliding_window > 0 && !c.rope_layers[static_cast<std::size_t>(i)]);
  return {};
}

}  // namespace

Result<void> read_layers(ConfigReader& config, const ModelType& type, LlamaStyleConfig& c) {
  const Window kind = type.window;
  CYB_ASSIGN(c.sliding_layers, read_layer_types(config, c.n_layers));
  if (kind != Window::kNone) {
    CYB_ASSIGN(c.sliding_window, read_window_size(config, type.default_window));
  }
  if (kind == Window::kQwen) CYB_TRY(read_qwen_layers(config, c));
  if (kind == Window::kNoRope) CYB_TRY(read_no_rope_layers(config, c));
  if (kind == Window::kPattern && c.sliding_layers.empty()) {
    CYB_ASSIGN(const std::optional<std::int64_t> pattern,
               config.integer("sliding_window_pattern", 1, kMaxLayers));
    // Gemma 2 alternates whatever the key says.
    const bool fixed = type.kind == Kind::kGemma2;
    c.sliding_layers =
        sliding_pattern(c.n_layers, fixed ? type.pattern : pattern.value_or(type.pattern));
  }
  config.ignore("sliding_window_pattern");
  const auto n_sliding = std::ranges::count(c.sliding_layers, true);
  const bool all_or_none = n_sliding == 0 || n_sliding == c.n_layers;
  if ((kind == Window::kNone || kind == Window::kAll) && !c.sliding_layers.empty()) {
    // These classes do not look at layer_types: it may only repeat what they do.
    if (!all_or_none || (n_sliding > 0) != (c.sliding_window > 0))
      return config.refuse("layer_types", "is not what this class does");
    c.sliding_layers.clear();
  }
  if (n_sliding > 0 && c.sliding_window == 0)
    return config.refuse("sliding_window", "is missing, and layer_types has sliding layers");
  return {};
}

}  // namespace cyb::hf
