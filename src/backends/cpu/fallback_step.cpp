// The reference on host views of the arena and the mapping.
#include "backends/cpu/fallback_step.hpp"

#include <exception>

#include "backends/reference/step_runner.hpp"

namespace cyb::cpu {

TensorView FallbackStep::view(const Run& run, const Operand& operand) const {
  if (operand.kind == Operand::Kind::kNone) return {};
  if (operand.kind == Operand::Kind::kWeight && cpu_weight(operand)->vector() == nullptr) {
    TensorView stored = cpu_weight(operand)->source();
    stored.shape = operand.shape;
    return stored;
  }
  return {operand.dtype, run_shape(operand, run.params), run.data(operand)};
}

Result<void> FallbackStep::call(const Run& run) const {
  inputs_.clear();
  outputs_.clear();
  for (const Operand& in : step_.inputs) inputs_.push_back(view(run, in));
  for (const Operand& out : step_.outputs)
    outputs_.push_back({out.dtype, run_shape(out, run.params), run.arena + out.offset});
  try {
    return reference::run_step({step_, inputs_, outputs_, run.params, nullptr, run.pool});
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory("cpu", 0, 0).in(step_.label));
  }
}

}  // namespace cyb::cpu
