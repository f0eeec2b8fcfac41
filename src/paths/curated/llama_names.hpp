// Canonical tensor names of the LlamaStyle members: four schemes, told apart by the tensors that
// are there.
#pragma once

#include <string>

#include "paths/tensor_source.hpp"

namespace cyb {

/// Names without ".weight" and ".bias"; those of a layer follow `layer` + number + ".".
struct LlamaNames {
  std::string embed = "model.embed_tokens", final_norm = "model.norm", head = "lm_head";
  std::string positions;  // learned positions [T, E]; empty: none
  std::string layer = "model.layers.";
  std::string input_norm = "input_layernorm", mlp_norm = "post_attention_layernorm";
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj";
  std::string qkv = "self_attn.qkv_proj", o = "self_attn.o_proj";
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm";
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  std::string gate_up = "mlp.gate_up_proj";
};

LlamaNames llama_names(const TensorSource& tensors);

}  // namespace cyb
