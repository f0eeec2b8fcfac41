// LlamaStyleConfig: what GGUF metadata and config.json say about a LlamaStyle model, in one form;
// written as the [architecture] table with every key stated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/import.hpp"
#include "model/config.hpp"

namespace cyb {

struct LlamaStyleConfig {
  std::string model_type, architecture_class;
  std::string license;
  std::vector<std::string> languages;
  std::int64_t hidden_size = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, n_layers = 0,
               ffn_size = 0;
  std::int64_t vocab_size = 0, max_positions = 0;
  double rope_theta = 10000.0;  // all layers, or the full ones where rope_theta_sliding is given
  std::optional<double> rope_theta_sliding;  // Gemma 3
  std::optional<ConfigTable> rope_scaling;   // model-format 4.3
  double partial_rotary_factor = 1.0;
  std::int64_t rope_dim = 0;  // where the source states it; 0: it follows from the factor
  bool layer_norm = false;    // LayerNorm, else RmsNorm
  double norm_eps = 1e-6;
  bool norm_unit_offset = false;
  bool tied = false;
  std::string activation = "silu";
  bool plain_mlp = false;          // act(up), else act(gate)·up
  bool parallel = false;           // attention and MLP read the same norm
  bool learned_positions = false;  // and no rope
  double embedding_scale = 1.0;
  double attention_scale = 0.0;  // 0: 1/sqrt(head_dim)
  double residual_multiplier = 1.0, logits_scaling = 1.0;
  double attn_softcap = 0.0, final_softcap = 0.0;
  std::int64_t sliding_window = 0;   // 0: none
  std::vector<bool> rope_layers;     // empty: all
  std::vector<bool> sliding_layers;  // empty: all full, or all sliding where there is a window
};

/// Top-level keys and [architecture]; [tokenizer] and [sampling] are added by others.
ConfigTable architecture_config(const LlamaStyleConfig& config);

/// Sizes, rope and attention in words.
void report_architecture(const LlamaStyleConfig& config, ImportReport& report);

/// Gemma's embedding scale: sqrt(hidden_size) rounded to f32 (execution 6.1).
double gemma_embedding_scale(std::int64_t hidden_size);

/// Every `pattern`-th layer full, the others sliding (Gemma 3: 6).
std::vector<bool> sliding_pattern(std::int64_t n_layers, std::int64_t pattern);

}  // namespace cyb
