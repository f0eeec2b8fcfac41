// What the adapter readers share: names of a source to weights of the model, values, and the checks
// of a pair.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/hf/source_names.hpp"
#include "model/model.hpp"
#include "paths/lora.hpp"

namespace cyb::lora {

/// One half of a pair as the file has it.
struct Half {
  std::string name;  // of the tensor
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// Both halves of one adapted module, by module name.
struct Halves {
  Half a, b;
  bool has_a = false, has_b = false;
  bool embedding = false;
};
using Modules = std::map<std::string, Halves, std::less<>>;

/// Puts a half into its module. Errors: L08 for one that is there already, or of both kinds.
Result<void> add_half(Modules& modules, const std::string& module, bool is_b, bool embedding,
                      Half half);

/// The values, all finite. Errors: SourceEncoding, L10.
Result<std::vector<float>> values_of(const Half& half);

/// What the model says about the names of its weights.
struct Facts {
  hf::HfConfig config;  // model_type and head counts alone
  std::string embedding;
  bool tied = false;
};
Result<Facts> facts_of(const Model& model);

/// The weight that `canonical` names: that of a tied head is the embedding. Errors: L07.
Result<std::string> weight_of(const Model& model, const Facts& facts, std::string_view canonical,
                              std::string_view source);

/// Rows of `values` [n, columns] in the order of `runs`.
std::vector<float> rows_of(const std::vector<float>& values, std::int64_t columns,
                           std::span<const RowRun> runs);
/// [rows, columns] to [columns, rows].
std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows,
                              std::int64_t columns);

/// A pair of one module, before its names are known: `a` [r, K], `b` [N, r]. Errors: L08 (a half is
/// missing), L09 (ranks), values_of.
Result<LoraPair> read_pair(const std::string& module, const Halves& halves);

/// Adds the pair where the model has a weight of its shape. Errors: L08 (twice), L09.
Result<void> place_pair(LoraPair pair, const Model& model, LoraAdapter& adapter);

}  // namespace cyb::lora
