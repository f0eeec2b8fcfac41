// A TensorSource of shapes alone, and the config and tensors of a two-layer LlamaStyle model in the
// shape of published ones.
#pragma once

#include <map>
#include <string>

#include "model/config.hpp"
#include "paths/tensor_source.hpp"

namespace cyb::test {

class FakeTensors final : public TensorSource {
 public:
  std::optional<TensorSpec> find(std::string_view name) const override {
    const auto it = shapes.find(std::string(name));
    if (it == shapes.end()) return std::nullopt;
    return TensorSpec::of(DType::kF32, it->second);
  }
  Result<std::vector<float>> read_f32(std::string_view name) const override {
    const auto it = shapes.find(std::string(name));
    if (it == shapes.end()) return fail(missing_tensor(name, "test"));
    return std::vector<float>(static_cast<std::size_t>(it->second.count()), 2.0f);
  }

  std::map<std::string, Shape> shapes;
};

struct FakeModel {
  ConfigTable config;
  FakeTensors tensors;

  FakeModel() {
    config.set("model_type", "llama");
    ConfigTable& a = config.table("architecture");
    a.set("hidden_size", 64);
    a.set("num_attention_heads", 4);
    a.set("num_key_value_heads", 2);
    a.set("head_dim", 16);
    a.set("num_hidden_layers", 2);
    a.set("intermediate_size", 128);
    a.set("vocab_size", 256);
    a.set("max_position_embeddings", 128);
    a.set("rms_norm_eps", 1e-6);
    a.set("tie_word_embeddings", false);
    auto& s = tensors.shapes;
    s["model.embed_tokens.weight"] = Shape{256, 64};
    s["lm_head.weight"] = Shape{256, 64};
    s["model.norm.weight"] = Shape{64};
    for (const std::string p : {"model.layers.0.", "model.layers.1."}) {
      s[p + "input_layernorm.weight"] = Shape{64};
      s[p + "post_attention_layernorm.weight"] = Shape{64};
      s[p + "self_attn.q_proj.weight"] = Shape{64, 64};
      s[p + "self_attn.k_proj.weight"] = Shape{32, 64};
      s[p + "self_attn.v_proj.weight"] = Shape{32, 64};
      s[p + "self_attn.o_proj.weight"] = Shape{64, 64};
      s[p + "mlp.gate_proj.weight"] = Shape{128, 64};
      s[p + "mlp.up_proj.weight"] = Shape{128, 64};
      s[p + "mlp.down_proj.weight"] = Shape{64, 128};
    }
  }

  ConfigTable& architecture() { return config.table("architecture"); }
};

}  // namespace cyb::test
