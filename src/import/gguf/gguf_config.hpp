// From GGUF metadata to LlamaStyleConfig: every key of the architecture's name space is used, known
// to be harmless, or refused.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "import/architecture.hpp"
#include "import/gguf/metadata.hpp"

namespace cyb::gguf {

/// What the tensors say before the metadata is read.
struct TensorFacts {
  std::uint64_t n_tensors = 0;
  std::int64_t embedding_rows = 0;
  bool has_head = false;          // output.weight
  bool has_rope_factors = false;  // rope_freqs.weight
};

struct ArchitectureRow {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // ours
  std::string_view class_name;  // transformers' class
  bool permuted;                // q and k rows in adjacent-pair order
  bool gemma;
};

/// Errors: InvalidConfig{general.architecture} that lists what is supported.
Result<ArchitectureRow> find_architecture(std::string_view name);

/// Errors: InvalidConfig naming the key.
Result<LlamaStyleConfig> read_config(Metadata& metadata, const ArchitectureRow& row,
                                     const TensorFacts& facts, ImportReport& report);

/// [sampling] from general.sampling.*; greedy where there is none.
Result<ConfigTable> read_sampling(Metadata& metadata, ImportReport& report);

}  // namespace cyb::gguf
