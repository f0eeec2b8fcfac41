// FallbackStep: a step without a kernel here, run by its op's f32 reference between two regions of
// the pool, whose threads the reference may use.
#pragma once

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

class FallbackStep {
 public:
  explicit FallbackStep(const Step& step) : step_(step) {}
  /// Errors are the reference's, with the step's label.
  Result<void> call(const Run& run) const;

 private:
  TensorView view(const Run& run, const Operand& operand) const;

  Step step_;
  mutable std::vector<TensorView>
      inputs_;  // of the call that runs: an executable runs one at a time
  mutable std::vector<MutableTensorView> outputs_;
};

}  // namespace cyb::cpu
