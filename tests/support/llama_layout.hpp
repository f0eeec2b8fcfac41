// Sizes, config keys and tensor shapes of a plain LlamaStyle model, for tests that make one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/config.hpp"
#include "tensor/shape.hpp"

namespace cyb::test {

struct LlamaSizes {
  std::int64_t hidden, heads, kv_heads, head_dim, layers, ffn, vocab, positions;
  bool tied;
};

inline void set_llama_sizes(ConfigTable& architecture, const LlamaSizes& s) {
  architecture.set("hidden_size", s.hidden);
  architecture.set("num_attention_heads", s.heads);
  architecture.set("num_key_value_heads", s.kv_heads);
  architecture.set("head_dim", s.head_dim);
  architecture.set("num_hidden_layers", s.layers);
  architecture.set("intermediate_size", s.ffn);
  architecture.set("vocab_size", s.vocab);
  architecture.set("max_position_embeddings", s.positions);
}

/// Names and shapes in file order: embedding, layers, final norm, head.
inline std::vector<std::pair<std::string, Shape>> llama_tensors(const LlamaSizes& s) {
  const std::int64_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  std::vector<std::pair<std::string, Shape>> out = {
      {"model.embed_tokens.weight", Shape{s.vocab, s.hidden}}};
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::string p = "model.layers." + std::to_string(i) + ".";
    out.insert(out.end(), {{p + "input_layernorm.weight", Shape{s.hidden}},
                           {p + "self_attn.q_proj.weight", Shape{q, s.hidden}},
                           {p + "self_attn.k_proj.weight", Shape{kv, s.hidden}},
                           {p + "self_attn.v_proj.weight", Shape{kv, s.hidden}},
                           {p + "self_attn.o_proj.weight", Shape{s.hidden, q}},
                           {p + "post_attention_layernorm.weight", Shape{s.hidden}},
                           {p + "mlp.gate_proj.weight", Shape{s.ffn, s.hidden}},
                           {p + "mlp.up_proj.weight", Shape{s.ffn, s.hidden}},
                           {p + "mlp.down_proj.weight", Shape{s.hidden, s.ffn}}});
  }
  out.emplace_back("model.norm.weight", Shape{s.hidden});
  if (!s.tied) out.emplace_back("lm_head.weight", Shape{s.vocab, s.hidden});
  return out;
}

}  // namespace cyb::test
