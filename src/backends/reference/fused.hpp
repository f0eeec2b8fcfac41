// The fused ops of a step by their references, one after the other over whole tensors: the bits of
// the ops one by one. What a backend's own fused kernels are judged by.
#pragma once

#include <vector>

#include "backends/plan.hpp"
#include "base/thread_pool.hpp"

namespace cyb::reference {

struct FusedCall {
  const Step& step;
  const FusedSlots& slots;
  MutableTensorView result;              // of the step's own op, and of the last fused op
  std::span<const TensorView> operands;  // Step::fused_inputs
  std::byte* scratch = nullptr;          // slots 1.., each fused_slot_bytes() long
  ThreadPool* pool = nullptr;
};

/// Bytes of one slot, a multiple of 64.
std::uint64_t fused_slot_bytes(const Step& step) noexcept;

/// Errors are those of the references, with the step's label. `inputs`: memory for views.
Result<void> run_fused_ops(const FusedCall& call, std::vector<TensorView>& inputs);

/// Shape rules of the fused ops: every result has the shape and dtype of the step's output.
Result<void> check_fused_ops(const Step& step);

}  // namespace cyb::reference
