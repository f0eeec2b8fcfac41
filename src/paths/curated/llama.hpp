// LlamaStyle: decoder-only transformers with RMS norms, rope, grouped-query attention and a gated
// MLP (Llama, Mistral, SmolLM2, Qwen2, Qwen3, Gemma 3). Formulas: docs/families.md; spec execution
// section 6.1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/blocks.hpp"
#include "paths/family.hpp"

namespace cyb {

struct LlamaConfig {
  std::uint32_t hidden = 0;      // E
  std::uint32_t n_heads = 0;     // H
  std::uint32_t n_kv_heads = 0;  // G
  std::uint32_t head_dim = 0;    // D
  std::uint32_t n_layers = 0;    // N
  std::uint32_t ffn = 0;         // F
  std::uint32_t vocab = 0;       // V
  std::uint32_t max_positions = 0;
  std::uint32_t rope_dim = 0;  // R
  std::uint8_t rope_style = 0;
  double theta_full = 0, theta_sliding = 0;
  std::vector<float> freqs_full, freqs_sliding;  // [R/2] each, empty: unscaled
  float norm_eps = 0;
  bool norm_unit_offset = false;
  bool tied = false;
  Activation activation = Activation::kSilu;
  float embedding_scale = 1;
  float attention_scale = 0;
  float attention_softcap = 0, final_softcap = 0;
  std::uint32_t window = 0;
  std::vector<bool> sliding;     // [N]
  std::vector<bool> rope_layer;  // [N]
};

/// Reads and checks [architecture]. Errors: F31, InvalidConfig for a value that this family does
/// not have.
Result<LlamaConfig> read_llama_config(const ConfigTable& config, const TensorSource& tensors);

class LlamaModel final : public FamilyModel {
 public:
  LlamaModel(LlamaConfig config, const TensorSource& tensors);

  /// F32 for a missing tensor, F33 for a shape that the config does not imply.
  Result<void> check_tensors(const TensorSource& tensors, std::string_view model_type);

  Result<void> body(Emit& emit) const override;
  std::vector<KvLayerShape> kv_layers() const override;
  std::uint32_t vocab_size() const override { return config_.vocab; }
  std::uint32_t max_positions() const override { return config_.max_positions; }
  bool uses_tensor(std::string_view name) const override;

 private:
  struct Expected {
    std::string name;
    std::vector<std::int64_t> shape;
    bool required;
  };
  std::vector<Expected> expected_tensors() const;
  Result<ValueId> optional_weight(Emit& emit, const std::string& name) const;
  Result<ValueId> gain(Emit& emit, const std::string& name) const;
  Result<ValueId> attention(Emit& emit, std::uint32_t layer, ValueId x) const;
  Result<ValueId> project_out(Emit& emit, const std::string& prefix, ValueId z, ValueId x) const;
  Result<ValueId> gated(Emit& emit, const std::string& prefix, ValueId x, ValueId gain_of_x) const;
  Result<ValueId> layer(Emit& emit, std::uint32_t layer, ValueId x) const;

  LlamaConfig config_;
  bool post_norms_ = false;           // Gemma: norms after attention and MLP
  std::vector<std::string> present_;  // sorted names that the model has and the body reads
};

Result<std::unique_ptr<FamilyModel>> bind_llama(const ConfigTable& config,
                                                const TensorSource& tensors);

}  // namespace cyb
