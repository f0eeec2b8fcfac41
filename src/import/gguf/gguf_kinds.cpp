// What single architectures have beside the common keys.
#include <cmath>

#include "import/gguf/keys.hpp"

namespace cyb::gguf {
namespace {

/// Which layers slide: stated (newer files), else Gemma 3's five to one and Gemma 2's one to one.
Result<void> read_gemma_layers(Keys& keys, std::int64_t fallback, LlamaStyleConfig& c,
                               ImportReport& report) {
  const std::string key = keys.name("attention.sliding_window_pattern");
  auto stated = keys.get().booleans_or_empty(key, static_cast<std::size_t>(c.n_layers));
  if (stated && !stated->empty()) {
    c.sliding_layers = std::move(*stated);
    return {};
  }
  std::int64_t pattern = fallback;
  if (keys.get().has(key)) {
    CYB_ASSIGN(pattern, keys.get().integer(key, {1, 1 << 16}));
  } else {
    report.assumptions.push_back(
        fmt::format("every {} layer attends to everything, the others to the window ({})",
                    fallback == 6 ? "6th" : "2nd", fallback == 6 ? "Gemma 3" : "Gemma 2"));
  }
  c.sliding_layers = sliding_pattern(c.n_layers, pattern);
  return {};
}

Result<void> read_softcaps(Keys& keys, double attention, double final, LlamaStyleConfig& c) {
  CYB_ASSIGN(c.attn_softcap, keys.number_or("attn_logit_softcapping", attention));
  CYB_ASSIGN(c.final_softcap, keys.number_or("final_logit_softcapping", final));
  if (c.attn_softcap < 0) return keys.refuse("attn_logit_softcapping", "is negative");
  if (c.final_softcap < 0) return keys.refuse("final_logit_softcapping", "is negative");
  return {};
}

/// Scores are scaled by 1/sqrt(head size), but in the 27B models by 1/sqrt(hidden size / heads).
Result<void> read_gemma_scale(Keys& keys, std::int64_t layers_27b, std::string_view name,
                              LlamaStyleConfig& c, ImportReport& report) {
  const bool is_27b = c.n_layers == layers_27b;
  const std::int64_t scalar = is_27b ? c.hidden_size / c.n_heads : c.head_dim;
  CYB_ASSIGN(c.attention_scale,
             keys.number_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(scalar))));
  if (!(c.attention_scale > 0)) return keys.refuse("attention.scale", "must be above 0");
  if (!keys.has("attention.scale")) {
    report.assumptions.push_back(
        fmt::format("attention scores are scaled by 1/sqrt({}) ({})", scalar, name));
  }
  return {};
}

Result<void> read_gemma2(Keys& keys, LlamaStyleConfig& c, ImportReport& report) {
  constexpr std::int64_t kLayers27b = 46;
  if (!keys.has("attention.sliding_window")) {
    c.sliding_window = 4096;
    report.assumptions.emplace_back("the window is 4096 (Gemma 2)");
  }
  if (c.sliding_window == 0) return keys.refuse("attention.sliding_window", "is 0");
  CYB_TRY(read_softcaps(keys, 50.0, 30.0, c));
  CYB_TRY(read_gemma_layers(keys, 2, c, report));
  return read_gemma_scale(keys, kLayers27b, "Gemma 2", c, report);
}

Result<void> read_gemma3(Keys& keys, LlamaStyleConfig& c, ImportReport& report) {
  constexpr std::int64_t kLayers27b = 62;
  CYB_TRY(read_softcaps(keys, 0.0, 0.0, c));
  if (c.sliding_window == 0) return keys.refuse("attention.sliding_window", "is missing");
  CYB_TRY(read_gemma_layers(keys, 6, c, report));
  CYB_ASSIGN(c.rope_theta_sliding, keys.number_or("rope.freq_base_swa", 10000.0));
  if (!(*c.rope_theta_sliding > 0)) return keys.refuse("rope.freq_base_swa", "must be above 0");
  if (!keys.has("rope.freq_base_swa")) {
    report.assumptions.emplace_back(
        "sliding layers rotate with theta 10000, without scaling (Gemma 3)");
  }
  return read_gemma_scale(keys, kLayers27b, "Gemma 3", c, report);
}

Result<void> read_plain(Keys& keys, LlamaStyleConfig& c) {
  c.attention_scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  CYB_ASSIGN(const double stated, keys.number_or("attention.scale", c.attention_scale));
  if (!(stated > 0)) return keys.refuse("attention.scale", "must be above 0");
  c.attention_scale = stated;
  for (const std::string_view suffix : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    CYB_ASSIGN(const double cap, keys.number_or(suffix, 0.0));
    if (cap != 0.0) return keys.refuse(suffix, "is not part of this architecture");
  }
  return {};
}

Result<void> read_granite(Keys& keys, LlamaStyleConfig& c) {
  struct Row {
    const char* suffix;
    double* value;
  };
  for (const Row& row :
       {Row{"embedding_scale", &c.embedding_scale}, Row{"residual_scale", &c.residual_multiplier},
        Row{"logit_scale", &c.logits_scaling}}) {
    CYB_ASSIGN(*row.value, keys.number_or(row.suffix, 1.0));
    if (!(*row.value > 0)) return keys.refuse(row.suffix, "must be above 0");
  }
  return {};
}

/// Every fourth layer has no rope (SmolLM3's no_rope_layer_interval).
void set_smollm3_layers(LlamaStyleConfig& c, ImportReport& report) {
  for (std::int64_t i = 0; i < c.n_layers; ++i) c.rope_layers.push_back((i + 1) % 4 != 0);
  report.assumptions.emplace_back("every 4th layer has no rope (SmolLM3)");
}

}  // namespace

Result<void> read_kind(Keys& keys, Kind kind, LlamaStyleConfig& c, ImportReport& report) {
  const bool gemma = kind == Kind::kGemma || kind == Kind::kGemma2 || kind == Kind::kGemma3;
  if (gemma) {
    c.activation = "gelu_pytorch_tanh";
    c.embedding_scale = gemma_embedding_scale(c.hidden_size);
  }
  if (kind == Kind::kGemma2) return read_gemma2(keys, c, report);
  if (kind == Kind::kGemma3) return read_gemma3(keys, c, report);
  if (is_layer_norm(kind)) {
    c.plain_mlp = true;
    c.activation = "gelu_pytorch_tanh";
  }
  c.parallel = kind == Kind::kPhi2;
  c.learned_positions = kind == Kind::kGpt2;
  if (kind == Kind::kGranite) CYB_TRY(read_granite(keys, c));
  if (kind == Kind::kSmolLM3) set_smollm3_layers(c, report);
  if (kind == Kind::kStarcoder2 && !keys.has("attention.sliding_window")) {
    report.warnings.emplace_back(
        "the file states no attention window: all layers attend to everything (the checkpoints of "
        "StarCoder 2 have a window of 4096)");
  }
  return read_plain(keys, c);
}

}  // namespace cyb::gguf
