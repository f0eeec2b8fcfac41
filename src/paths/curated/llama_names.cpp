// The schemes: Hugging Face's Llama, Phi (Phi-2), Starcoder2, and GPT-2 with GPTBigCode.
#include "paths/curated/llama_names.hpp"

namespace cyb {

LlamaNames llama_names(const TensorSource& tensors) {
  LlamaNames names;
  const auto has = [&](const char* name) { return tensors.find(name).has_value(); };
  if (has("wte.weight")) {
    names.embed = "wte";
    names.positions = "wpe";
    names.final_norm = "ln_f";
    names.layer = "h.";
    names.input_norm = "ln_1";
    names.mlp_norm = "ln_2";
    names.qkv = "attn.c_attn";
    names.o = "attn.c_proj";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
  } else if (has("model.final_layernorm.weight")) {
    names.final_norm = "model.final_layernorm";
    names.o = "self_attn.dense";
    names.up = "mlp.fc1";
    names.down = "mlp.fc2";
  } else if (has("model.layers.0.mlp.c_fc.weight")) {
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
  }
  return names;
}

}  // namespace cyb
