// From GGUF metadata to LlamaStyleConfig: every key of the architecture's name space is used, known
// to be harmless, or refused.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "import/architecture.hpp"
#include "import/gguf/metadata.hpp"

namespace cyb::gguf {

/// What the tensors say before the metadata is read.
struct TensorFacts {
  std::uint64_t n_tensors = 0;
  std::int64_t embedding_rows = 0;
  bool has_head = false;                           // output.weight
  bool has_rope_factors = false;                   // rope_freqs.weight
  std::vector<float> short_factors, long_factors;  // rope_factors_*.weight
};

/// Architectures that differ in more than names.
enum class Kind : std::uint8_t {
  kPlain,
  kGemma,
  kGemma2,
  kGemma3,
  kPhi2,
  kStarcoder2,
  kGpt2,  // and StarCoder 1
  kGranite,
  kSmolLM3
};

/// LayerNorm, biases and a plain MLP with GELU.
constexpr bool is_layer_norm(Kind kind) {
  return kind == Kind::kPhi2 || kind == Kind::kStarcoder2 || kind == Kind::kGpt2;
}

struct ArchitectureRow {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // ours
  std::string_view class_name;  // transformers' class
  bool permuted;                // q and k rows in adjacent-pair order
  Kind kind;
};

/// Errors: InvalidConfig{general.architecture} that lists what is supported.
Result<ArchitectureRow> find_architecture(std::string_view name);

/// Errors: InvalidConfig naming the key.
Result<LlamaStyleConfig> read_config(Metadata& metadata, const ArchitectureRow& row,
                                     const TensorFacts& facts, ImportReport& report);

/// [sampling] from general.sampling.*; greedy where there is none.
Result<ConfigTable> read_sampling(Metadata& metadata, ImportReport& report);

}  // namespace cyb::gguf
