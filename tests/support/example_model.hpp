// The worked example of docs/model-format.md as a draft, for tests that need a small valid model.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "model/writer.hpp"
#include "support/llama_layout.hpp"

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
  const LlamaSizes sizes{32, 2, 1, 16, 1, 64, 6, 64, true};
  ModelDraft draft;
  draft.name = "tiny-llama-example";
  draft.card = "# tiny-llama-example\n\nOne-layer LlamaStyle model, for format tests only.\n";
  draft.config.set("model_type", "llama");
  draft.config.set("license", "CC0-1.0");
  draft.config.set("languages", ConfigArray{"en"});
  ConfigTable& arch = draft.config.table("architecture");
  set_llama_sizes(arch, sizes);
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
  for (const auto& [name, shape] : llama_tensors(sizes)) {
    const bool norm = shape.rank() == 1, mlp = name.find(".mlp.") != std::string::npos;
    const bool attention = name.find(".self_attn.") != std::string::npos;
    const DType dtype = attention ? DType::kQ8 : mlp ? DType::kQ4 : DType::kF32;
    draft.tensors.push_back(
        repeated_tensor(name, dtype, shape, norm ? f32_bytes(1) : std::vector<std::byte>()));
  }
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
