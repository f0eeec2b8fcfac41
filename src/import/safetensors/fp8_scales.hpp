// 8-bit float checkpoints: which quantisation methods are weights times scales and nothing else,
// and the scale tensors under the names that these checkpoints use.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/draft.hpp"

namespace cyb::safetensors {

/// What is wrong with a `quantization_config` that is none of ours; nullopt for one that we take:
/// methods fp8, fbgemm_fp8, modelopt (FP8), compressed-tensors (8-bit float weights), with one
/// scale a tensor, a row, or a square of 128 by 128 values.
std::optional<std::string> fp8_config_problem(const nlohmann::json& quantization);

/// The scales of one checkpoint.
class Fp8Scales {
 public:
  /// Keeps `tensor` (with its canonical name) where that is a scale: `<weight>_scale`,
  /// `<weight>_scale_inv`. True where it was one, or one of activations, which is noted as skipped.
  Result<bool> take(SourceTensor& tensor, ImportReport& report);
  /// True for the name of a scale, whatever its type.
  static bool is_scale_name(std::string_view canonical) noexcept;

  /// A tensor `<name>.scale` in f32 for each of `tensors` that has one. `required`: every fp8
  /// tensor must. Errors: MissingTensor, Format (a scale of another shape or type, one without its
  /// weight).
  Result<std::vector<DraftTensor>> siblings(const std::vector<SourceTensor>& tensors,
                                            bool required) const;
  bool empty() const noexcept { return scales_.empty(); }

 private:
  std::map<std::string, SourceTensor, std::less<>> scales_;  // by the weight's canonical name
};

}  // namespace cyb::safetensors
