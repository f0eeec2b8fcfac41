// LoRA adapters on the weights of a model: y = W x + sum_i scale_i B_i (A_i x) (Hu et al., arXiv
// 2106.09685), a side branch beside a weight of any encoding. The pairs of all adapters of one
// weight are stacked along the rank with their scales in B, so a weight has one branch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "ops/dim.hpp"

namespace cyb {

class WeightTable;

/// Which reading of a weight has the branch: a tied embedding is read in both ways.
enum class LoraPlace : std::uint8_t { kProduct, kEmbedding };

/// The adapted form of one weight [N, K] (embedding: N = E, K = V): a [r, K], b [N, r], f32.
struct LoraPair {
  std::string tensor;  // canonical name of the weight
  LoraPlace place = LoraPlace::kProduct;
  std::int64_t n_out = 0, n_in = 0, rank = 0;
  std::vector<float> a, b;
  double scale = 1.0;  // alpha / r, or alpha / sqrt(r)
  std::string source;  // what the adapter's file calls it, for messages
};

/// One adapter file, checked against the model that it was read for.
struct LoraAdapter {
  std::string path;
  std::string format;  // "PEFT", "GGUF"
  Digest content{};    // BLAKE3 of its bytes
  std::vector<LoraPair> pairs;
};

/// An adapter with its weight; 0 leaves the model as it is, bit for bit.
struct LoraUse {
  std::shared_ptr<const LoraAdapter> adapter;
  double weight = 1.0;
};

/// The branch of one reading of a weight. `a` and `b` are tensors of the weight table: product
/// a [R, K], embedding a [V, R]; b [N, R] holds the scales.
struct LoraTerm {
  std::string tensor;
  LoraPlace place = LoraPlace::kProduct;
  std::uint32_t rank = 0;  // R, the sum of the ranks
  std::string a, b;
};

class LoraTerms {
 public:
  bool empty() const noexcept { return terms_.empty(); }
  std::span<const LoraTerm> all() const noexcept { return terms_; }
  /// Null where that reading of the weight has no branch.
  const LoraTerm* find(std::string_view tensor, LoraPlace place) const noexcept;

 private:
  friend Result<LoraTerms> add_adapters(std::span<const LoraUse> uses, WeightTable& weights);
  std::vector<LoraTerm> terms_;  // ascending (tensor, place)
};

/// Errors: L09 where the weight is not the [N, K] of the pair (embedding: [K, N]).
Result<void> check_lora_pair(const LoraPair& pair, const TensorSpec& weight);

/// Stacks the adapters in the order given and adds A and B to the table. Errors: L07 (no such
/// weight), L09 (another shape), L10 (not finite once scaled), InvalidInput (a weight that is no
/// number).
Result<LoraTerms> add_adapters(std::span<const LoraUse> uses, WeightTable& weights);

/// "3 matrices, rank 4..8, scale 2" for people.
std::string lora_summary(const LoraAdapter& adapter);

/// An Error of kind Format with a code L01.. (docs/errors.md).
Error lora_error(std::string code, std::string text);

/// L11: a reading that no branch can be put beside.
Error lora_unused(const LoraTerm& term, std::string_view why);

}  // namespace cyb
