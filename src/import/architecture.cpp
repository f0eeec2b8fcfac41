// The [architecture] table of LlamaStyle models.
#include "import/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace cyb {
namespace {

bool any_sliding(const LlamaStyleConfig& c) {
  return c.sliding_window > 0 &&
         (c.sliding_layers.empty() || std::ranges::count(c.sliding_layers, true) > 0);
}

void set_attention(const LlamaStyleConfig& c, ConfigTable& out) {
  out.set("attention_scale", c.attention_scale > 0
                                 ? c.attention_scale
                                 : 1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  out.set("attn_logit_softcapping", c.attn_softcap);
  out.set("final_logit_softcapping", c.final_softcap);
  if (!any_sliding(c)) return;
  out.set("sliding_window", c.sliding_window);
  ConfigArray types;
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const bool sliding = c.sliding_layers.empty() || c.sliding_layers[static_cast<std::size_t>(i)];
    types.emplace_back(sliding ? "sliding" : "full");
  }
  out.set("layer_types", std::move(types));
}

std::string scaling_text(const ConfigTable& scaling) {
  std::string out;
  for (const auto& [key, value] : scaling.items()) {
    out += out.empty() ? "" : ", ";
    if (const std::string* text = value.string()) out += *text;
    if (const auto number = value.number()) out += fmt::format("{} {}", key, *number);
  }
  return out;
}

}  // namespace

ConfigTable architecture_config(const LlamaStyleConfig& c) {
  ConfigTable out;
  out.set("model_type", c.model_type);
  if (!c.license.empty()) out.set("license", c.license);
  if (!c.languages.empty())
    out.set("languages", ConfigArray(c.languages.begin(), c.languages.end()));
  if (!c.architecture_class.empty()) out.set("architecture_class", c.architecture_class);
  out.set("context_length", c.max_positions);
  ConfigTable& a = out.table("architecture");
  a.set("hidden_size", c.hidden_size);
  a.set("num_attention_heads", c.n_heads);
  a.set("num_key_value_heads", c.n_kv_heads);
  a.set("head_dim", c.head_dim);
  a.set("num_hidden_layers", c.n_layers);
  a.set("intermediate_size", c.ffn_size);
  a.set("vocab_size", c.vocab_size);
  a.set("max_position_embeddings", c.max_positions);
  if (!c.learned_positions) {
    a.set("rope_theta", c.rope_theta);
    a.set("rope_style", "neox");
    a.set("partial_rotary_factor", c.partial_rotary_factor);
  }
  a.set("norm_type", c.layer_norm ? "layer" : "rms");
  a.set(c.layer_norm ? "layer_norm_eps" : "rms_norm_eps", c.norm_eps);
  a.set("norm_unit_offset", c.norm_unit_offset);
  a.set("tie_word_embeddings", c.tied);
  a.set("hidden_activation", c.activation);
  a.set("mlp_type", c.plain_mlp ? "plain" : "gated");
  a.set("parallel_block", c.parallel);
  a.set("embedding_scale", c.embedding_scale);
  if (c.residual_multiplier != 1.0) a.set("residual_multiplier", c.residual_multiplier);
  if (c.logits_scaling != 1.0) a.set("logits_scaling", c.logits_scaling);
  set_attention(c, a);
  if (c.rope_theta_sliding) {
    a.set("rope_theta_full", c.rope_theta);
    a.set("rope_theta_sliding", *c.rope_theta_sliding);
  }
  if (std::ranges::count(c.rope_layers, false) > 0) {
    ConfigArray layers;
    for (const bool rope : c.rope_layers) layers.emplace_back(rope);
    a.set("rope_layers", std::move(layers));
  }
  if (c.rope_scaling) a.set("rope_scaling", *c.rope_scaling);
  return out;
}

void report_architecture(const LlamaStyleConfig& c, ImportReport& report) {
  report.architecture = c.architecture_class;
  report.n_layers = c.n_layers;
  report.n_heads = c.n_heads;
  report.n_kv_heads = c.n_kv_heads;
  report.head_dim = c.head_dim;
  report.hidden_size = c.hidden_size;
  report.ffn_size = c.ffn_size;
  report.vocab_size = c.vocab_size;
  report.context_tokens = c.max_positions;
  report.tied = c.tied;
  report.rope = fmt::format("theta {}", c.rope_theta);
  if (c.rope_theta_sliding)
    report.rope += fmt::format(" in full layers, {} in sliding layers", *c.rope_theta_sliding);
  if (c.partial_rotary_factor < 1.0)
    report.rope += fmt::format(", {} of each head", c.partial_rotary_factor);
  if (c.rope_scaling) report.rope += fmt::format(", scaling {}", scaling_text(*c.rope_scaling));
  if (c.learned_positions) report.rope = "none (learned positions)";
  if (const auto n = std::ranges::count(c.rope_layers, false); n > 0)
    report.rope += fmt::format(", none in {} of {} layers", n, c.n_layers);
  report.attention = "full";
  if (any_sliding(c)) {
    const auto n =
        c.sliding_layers.empty() ? c.n_layers : std::ranges::count(c.sliding_layers, true);
    report.attention = fmt::format("window {} in {} of {} layers", c.sliding_window, n, c.n_layers);
  }
}

double gemma_embedding_scale(std::int64_t hidden_size) {
  return static_cast<double>(static_cast<float>(std::sqrt(static_cast<double>(hidden_size))));
}

std::vector<bool> sliding_pattern(std::int64_t n_layers, std::int64_t pattern) {
  std::vector<bool> out;
  for (std::int64_t i = 0; i < n_layers; ++i) out.push_back((i + 1) % pattern != 0);
  return out;
}

}  // namespace cyb
