// Checking and running of fused ops.
#include "backends/reference/fused.hpp"

#include <algorithm>

namespace cyb::reference {
namespace {

TensorSpec spec_of(const Operand& operand) {
  if (operand.kind == Operand::Kind::kNone) return TensorSpec::none();
  return TensorSpec::of(operand.dtype, operand.shape);
}

}  // namespace

std::uint64_t fused_slot_bytes(const Step& step) noexcept {
  const Operand& out = step.outputs[0];
  return (tensor_bytes(out.dtype, out.shape).value_or(0) + 63) / 64 * 64;
}

Result<void> run_fused_ops(const FusedCall& call, std::vector<TensorView>& inputs) {
  const std::uint64_t slot_bytes = fused_slot_bytes(call.step);
  const auto result = [&](std::size_t i) {
    MutableTensorView view = call.result;
    const std::uint32_t slot = call.slots.of[i];
    if (slot != 0) view.data = call.scratch + (slot - 1) * slot_bytes;
    return view;
  };
  for (std::size_t i = 0; i < call.step.fused.size(); ++i) {
    const FusedOp& fused = call.step.fused[i];
    inputs.clear();
    for (const FusedInput& in : fused.inputs) {
      const MutableTensorView own = result(in.is_result ? in.index : 0);
      inputs.push_back(in.is_result ? TensorView{own.dtype, own.shape, own.data}
                                    : call.operands[in.index]);
    }
    const MutableTensorView output = result(i + 1);
    auto done = op_info(fused.op.tag)
                    .reference({.attrs = fused.op.attrs,
                                .inputs = inputs,
                                .outputs = std::span(&output, 1),
                                .pool = call.pool});
    if (!done) return fail(std::move(done).error().in(call.step.label));
  }
  return {};
}

Result<void> check_fused_ops(const Step& step) {
  if (step.fused.empty()) return {};
  if (step.outputs.size() != 1) return fail(internal_error("fused ops on several outputs"));
  const TensorSpec want = spec_of(step.outputs[0]);
  for (std::size_t i = 0; i < step.fused.size(); ++i) {
    std::vector<TensorSpec> inputs;
    for (const FusedInput& in : step.fused[i].inputs) {
      if (in.index >= (in.is_result ? i + 1 : step.fused_inputs.size()))
        return fail(internal_error("a fused op that reads what is not there"));
      inputs.push_back(in.is_result ? want : spec_of(step.fused_inputs[in.index]));
    }
    CYB_ASSIGN(const std::vector<TensorSpec> got, infer(step.fused[i].op, inputs));
    if (got.size() != 1 || got[0].dtype != want.dtype || got[0].dims != want.dims)
      return fail(internal_error("a fused op that changes the shape or dtype"));
  }
  return {};
}

}  // namespace cyb::reference
