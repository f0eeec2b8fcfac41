// StepRunner: one step of a plan by the f32 references, on views. Also the fallback of backends
// whose memory the host can read: they supply the views and their KV pages through KvAccess.
#pragma once

#include "backends/plan.hpp"
#include "backends/reference/eager_sink.hpp"

namespace cyb::reference {

struct StepCall {
  const Step& step;
  std::span<const TensorView> inputs;  // absent: data == nullptr
  std::span<const MutableTensorView> outputs;
  const StepParams& params;
  KvAccess* kv = nullptr;
  ThreadPool* pool = nullptr;
  std::uint64_t* scratch_bytes = nullptr;  // raised to what the step allocates for itself
  bool measures = false;                   // nothing is computed, and no view is followed
};

/// Errors are those of the op's reference, with the step's label as frame.
Result<void> run_step(const StepCall& call);

}  // namespace cyb::reference
