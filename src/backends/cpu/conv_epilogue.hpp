// ConvEpilogue: what a convolution does with its sums while they are near. Constants per channel
// become one scale and bias (class F), Relu behind them is free; the other fused ops follow block
// by block.
#pragma once

#include <optional>

#include "backends/cpu/fused.hpp"

namespace cyb::cpu {

class ConvEpilogue {
 public:
  /// `step`: with fused ops in memory order, channels last; `bias`: [channels] or null.
  ConvEpilogue(Step step, const float* bias, std::size_t channels);

  /// Null: none. Zeros follow, so that a whole block can be read from any channel on.
  const float* scale() const noexcept { return scale_.empty() ? nullptr : scale_.data(); }
  const float* bias() const noexcept { return bias_.empty() ? nullptr : bias_.data(); }
  bool relu() const noexcept { return relu_; }

  std::size_t scratch_bytes() const noexcept { return ops_ ? ops_->scratch_bytes() : 0; }
  /// False where a BatchNorm could not be made a scale and bias.
  bool has_kernels() const noexcept { return has_kernels_; }
  bool has_ops() const noexcept { return ops_.has_value(); }
  /// The remaining ops on values [first, first + n) of the result.
  void apply(const Run& run, std::byte* scratch, std::size_t first, std::size_t n) const noexcept;

 private:
  static bool fold(Step& step, std::vector<double>& scale, std::vector<double>& bias);
  static void fold_norm(const Step& step, std::vector<double>& scale, std::vector<double>& bias);

  std::vector<float> scale_, bias_;
  bool relu_ = false, has_kernels_ = true;
  std::optional<FusedOps> ops_;
};

/// 3x3 windows of which Winograd's algorithm makes fewer products.
bool is_winograd(const conv::Problem& problem);
Result<StepPtr> make_winograd_step(const Step& step, const conv::Problem& problem,
                                   ConvEpilogue epilogue, Build& build);

}  // namespace cyb::cpu
