// FallbackStep: a step without a kernel here, run by its op's f32 reference on thread 0.
#pragma once

#include <optional>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

class FallbackStep final : public CpuStep {
 public:
  /// `error` outlives the step and takes what the reference reports.
  FallbackStep(const Step& step, std::optional<Error>& error) : step_(step), error_(error) {}
  void run(const Run& run, unsigned thread) const noexcept override;

 private:
  Result<void> call(const Run& run) const;
  TensorView view(const Run& run, const Operand& operand) const;

  Step step_;
  std::optional<Error>& error_;
};

}  // namespace cyb::cpu
