// LlamaStyle: decoder-only transformers (Llama, Mistral, Qwen, Phi, Gemma, SmolLM, StarCoder, OLMo
// 2, Granite, GPT-2). Formulas and variants: docs/families.md; spec execution section 6.1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/blocks.hpp"
#include "paths/curated/llama_names.hpp"
#include "paths/curated/rope_scaling.hpp"
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
  RopeScaling rope_full, rope_sliding;
  float norm_eps = 0;
  bool layer_norm = false;  // LayerNorm in place of RmsNorm
  bool norm_unit_offset = false;
  bool tied = false;
  bool gated = true;      // act(gate)·up, else act(up)
  bool parallel = false;  // x + attn(n(x)) + mlp(n(x))
  Activation activation = Activation::kSilu;
  float embedding_scale = 1;
  float attention_scale = 0;
  float residual_multiplier = 1, logits_scaling = 1;
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
  /// What a projection reads: x and the gain of its RmsNorm, or (no gain) x as it is.
  struct Normed {
    ValueId x = kNoValue, gain = kNoValue;
  };
  struct Heads {
    ValueId q = kNoValue, k = kNoValue, v = kNoValue;
  };

  std::string layer_name(std::uint32_t layer, const std::string& part) const;
  void expect_projection(std::vector<Expected>& out, const std::string& name, std::int64_t rows,
                         std::int64_t columns) const;
  void expect_norm(std::vector<Expected>& out, const std::string& name) const;
  void expect_layer(std::vector<Expected>& out, std::uint32_t layer) const;
  std::vector<Expected> expected_tensors() const;

  Result<ValueId> optional_weight(Emit& emit, const std::string& name) const;
  Result<ValueId> gain(Emit& emit, const std::string& name) const;
  Result<Normed> norm(Emit& emit, const std::string& name, ValueId x) const;
  Result<std::vector<ValueId>> linear(Emit& emit, Normed in,
                                      const std::vector<std::string>& names) const;
  Result<Heads> project_heads(Emit& emit, std::uint32_t layer, Normed in) const;
  Result<ValueId> scaled_queries(Emit& emit, const RopeScaling& rope, ValueId q) const;
  Result<ValueId> attention(Emit& emit, std::uint32_t layer, Normed in) const;
  Result<ValueId> add_projected(Emit& emit, const std::string& name, ValueId z, ValueId x,
                                const std::string& post_norm) const;
  Result<ValueId> mlp(Emit& emit, std::uint32_t layer, Normed in) const;
  Result<ValueId> layer(Emit& emit, std::uint32_t layer, ValueId x) const;
  Result<ValueId> embedding(Emit& emit) const;
  Result<ValueId> head(Emit& emit, ValueId x) const;

  LlamaConfig config_;
  LlamaNames names_;
  bool pre_norms_ = true;    // OLMo 2 has none
  bool post_norms_ = false;  // Gemma 2 and 3, OLMo 2: norms after attention and MLP
  bool fused_qkv_ = false, fused_gate_up_ = false;
  std::vector<std::string> present_;  // sorted names that the model has and the body reads
};

Result<std::unique_ptr<FamilyModel>> bind_llama(const ConfigTable& config,
                                                const TensorSource& tensors);

}  // namespace cyb
