// Quantising: a ModelDraft whose matrices are encoded anew while they are written, one piece at a
// time. The bytes depend on the source and the options only, never on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"
#include "model/writer.hpp"
#include "tensor/dtype.hpp"

namespace cyb {

/// Tensors whose name matches `pattern` (`*` any characters, `?` one) get the encoding `to`.
struct KeepRule {
  std::string pattern;
  DType to = DType::kF32;
};

struct QuantizeOptions {
  DType to = DType::kQ8;
  std::vector<KeepRule> keep = {};  // the first that matches counts, before every other rule
  bool allow_requantize = false;    // matrices that are in blocks already may be encoded again
  unsigned n_threads = 0;           // 0: one per physical core
};

/// What became of one tensor. The error is that of writing it, known once it was written.
struct QuantizedTensor {
  std::string name;
  DType from = DType::kF32, to = DType::kF32;
  std::string reason;  // "": the target; else the rule that chose another encoding
  std::uint64_t bytes_before = 0, bytes_after = 0, n_values = 0;
  double squared_error = 0, squared_values = 0;  // sums, 0 where nothing was encoded
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;  // in file order
  std::uint64_t n_requantized = 0;       // that were in blocks before
};

/// Encodings that `to` and KeepRule::to may have, in the order of their size.
std::vector<DType> quantize_targets();
/// Encodings that a model as a whole may be quantised to: those in blocks.
bool is_quantize_target(DType dtype) noexcept;

/// `*` and `?` as in file names; no other character is special.
bool matches_glob(std::string_view pattern, std::string_view text) noexcept;

/// All parts of an opened model, to be written again. Its tensors are read from `model`.
/// Errors: F34, G codes.
Result<ModelDraft> draft_of_model(std::shared_ptr<const Model> model);

/// Chooses an encoding for each tensor by the rules of docs/quantize.md and makes the draft produce
/// it. The report is filled in part now and in part by writing the draft, which must not outlive
/// it. Errors: InvalidInput (a pattern without a tensor; an encoding that does not fit; matrices
/// that are in blocks already, unless allowed), NotBuilt for a model without a family,
/// MissingTensor. While writing: F42 for a value that is not finite, WeightFormat for one that f16
/// cannot hold.
Result<void> quantize_draft(ModelDraft& draft, const QuantizeOptions& options,
                            QuantizeReport& report);

}  // namespace cyb
