// The worked example of docs/model-format.md as a draft, for tests that need a small valid model.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "model/writer.hpp"

namespace cyb::test {

/// A tensor whose bytes repeat `pattern` (empty: zeros).
inline DraftTensor repeated_tensor(std::string name, DType dtype, const Shape& shape,
                                   std::vector<std::byte> pattern = {}) {
  const std::uint64_t size = tensor_bytes(dtype, shape).value();
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; !pattern.empty() && i < size; ++i) bytes[i] = pattern[i % pattern.size()];
  return {std::move(name), dtype, shape,
          [bytes = std::move(bytes)](const ByteSink& sink) { return sink(bytes); }};
}

inline std::vector<std::byte> f32_bytes(float value) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline ModelDraft example_draft() {
  ModelDraft draft;
  draft.name = "tiny-llama-example";
  draft.card = "# tiny-llama-example\n\nOne-layer LlamaStyle model, for format tests only.\n";
  draft.config.set("model_type", "llama");
  draft.config.set("license", "CC0-1.0");
  draft.config.set("languages", ConfigArray{"en"});
  ConfigTable& arch = draft.config.table("architecture");
  arch.set("hidden_size", 32);
  arch.set("num_attention_heads", 2);
  arch.set("num_key_value_heads", 1);
  arch.set("head_dim", 16);
  arch.set("num_hidden_layers", 1);
  arch.set("intermediate_size", 64);
  arch.set("vocab_size", 6);
  arch.set("max_position_embeddings", 64);
  arch.set("rope_theta", 10000.0);
  arch.set("rms_norm_eps", 1e-5);
  arch.set("tie_word_embeddings", true);
  arch.set("hidden_activation", "silu");
  ConfigTable& tokenizer = draft.config.table("tokenizer");
  tokenizer.set("type", "bpe");
  tokenizer.set("pre", "gpt2");
  tokenizer.set("bos_token_id", 0);
  tokenizer.set("eos_token_ids", ConfigArray{1});
  tokenizer.set("add_bos_token", false);
  draft.config.table("sampling").set("method", "greedy");
  const auto add = [&](const char* name, DType dtype, const Shape& shape,
                       std::vector<std::byte> pattern = {}) {
    draft.tensors.push_back(repeated_tensor(name, dtype, shape, std::move(pattern)));
  };
  add("model.embed_tokens.weight", DType::kF32, {6, 32});
  add("model.layers.0.input_layernorm.weight", DType::kF32, {32}, f32_bytes(1));
  add("model.layers.0.self_attn.q_proj.weight", DType::kQ8, {32, 32});
  add("model.layers.0.self_attn.k_proj.weight", DType::kQ8, {16, 32});
  add("model.layers.0.self_attn.v_proj.weight", DType::kQ8, {16, 32});
  add("model.layers.0.self_attn.o_proj.weight", DType::kQ8, {32, 32});
  add("model.layers.0.post_attention_layernorm.weight", DType::kF32, {32}, f32_bytes(1));
  add("model.layers.0.mlp.gate_proj.weight", DType::kQ4, {64, 32});
  add("model.layers.0.mlp.up_proj.weight", DType::kQ4, {64, 32});
  add("model.layers.0.mlp.down_proj.weight", DType::kQ4, {32, 64});
  add("model.norm.weight", DType::kF32, {32}, f32_bytes(1));
  for (const char* token : {"<|bos|>", "<|eos|>", "a", "b", "ab", "\u0120"}) {
    draft.vocab.tokens.push_back(token);
  }
  draft.vocab.merges.push_back("a");
  draft.vocab.merges.push_back("b");
  draft.vocab.special = {0, 1};
  return draft;
}

/// The example exactly as the document shows it: no hashes but [cyb.id] model.
inline ModelDraft documented_example() {
  ModelDraft draft = example_draft();
  draft.tensor_hashes = false;
  draft.state_weights_hash = false;
  return draft;
}

}  // namespace cyb::test
