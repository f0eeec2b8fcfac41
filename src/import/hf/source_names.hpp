// What a tensor of a Hugging Face checkpoint becomes: canonical names, and how its rows or axes
// move.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/draft.hpp"
#include "import/hf/hf_config.hpp"

namespace cyb::hf {

enum class Arrangement : std::uint8_t {
  kAsStored,
  kTransposed,  // GPT-2: [in, out]
  kGroupQ,      // InternLM2's wqkv: (H/G)·D rows of q, D of k, D of v for each KV head
  kGroupK,
  kGroupV,
  kHeadsToFused,  // GPTBigCode without multi-query: q, k, v of each head -> all q, all k, all v
};

struct TensorUse {
  std::string canonical;
  Arrangement how = Arrangement::kAsStored;
};

/// Canonical tensors that a source tensor makes, before a look into the name table.
std::vector<TensorUse> tensor_uses(std::string_view source_name, const HfConfig& config);

/// A layer that the class itself leaves out (MiMo's multi-token prediction).
bool is_left_out(std::string_view source_name, const HfConfig& config);

/// The rows that the arrangement takes, run after run; empty: all as they are.
std::vector<RowRun> moved_rows(Arrangement how, const LlamaStyleConfig& config);
/// Rows of the source tensor that moved_rows() takes from.
std::int64_t grouped_rows(const LlamaStyleConfig& config);

/// The tensor in our order. Errors: Format.
Result<DraftTensor> arranged(SourceTensor tensor, Arrangement how, const LlamaStyleConfig& config);

}  // namespace cyb::hf
