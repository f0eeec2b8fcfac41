// The reference on host views of the arena and the mapping.
#include "backends/cpu/fallback_step.hpp"

#include <exception>

namespace cyb::cpu {

TensorView FallbackStep::view(const Run& run, const Operand& operand) const {
  if (operand.kind == Operand::Kind::kNone) return {};
  if (operand.kind == Operand::Kind::kWeight && cpu_weight(operand)->vector() == nullptr)
    return cpu_weight(operand)->source();
  return {operand.dtype, run_shape(operand, run.params), run.data(operand)};
}

Result<void> FallbackStep::call(const Run& run) const {
  std::vector<TensorView> inputs;
  std::vector<MutableTensorView> outputs;
  for (const Operand& in : step_.inputs) inputs.push_back(view(run, in));
  for (const Operand& out : step_.outputs)
    outputs.push_back({out.dtype, run_shape(out, run.params), run.arena + out.offset});
  return op_info(step_.op.tag)
      .reference(RefCall{.attrs = step_.op.attrs, .inputs = inputs, .outputs = outputs});
}

void FallbackStep::run(const Run& run, unsigned thread) const noexcept {
  if (thread != 0) return;
  try {
    auto done = call(run);
    if (!done) error_ = std::move(done).error().in(step_.label);
  } catch (const std::exception& e) {
    error_ = out_of_memory("cpu", 0, 0);
  }
}

}  // namespace cyb::cpu
