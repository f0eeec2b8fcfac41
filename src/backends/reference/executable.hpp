// ReferenceExecutable: a checked plan. submit() copies the run's parameters, sync() runs the steps
// one after the other and makes the outputs visible; every output is checked to be finite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "backends/reference/device_memory.hpp"
#include "backends/reference/fused.hpp"
#include "backends/reference/kv_store.hpp"
#include "base/thread_pool.hpp"

namespace cyb::reference {

/// What the executables of one backend share.
struct Device {
  std::string name;
  std::shared_ptr<DeviceMemory> memory;
  std::unique_ptr<ThreadPool> pool;  // used inside memory->execute() only
};

class ReferenceExecutable final : public Executable {
 public:
  /// Errors: ShapeMismatch and InvalidInput of an op's rule, kInternal for a malformed plan,
  /// OutOfMemory.
  static Result<std::unique_ptr<Executable>> compile(std::shared_ptr<Device> device, Plan plan);

  Result<void> submit(const StepParams& params) override;
  Result<void> sync(std::stop_token stop) override;
  Result<TensorView> output_tensor(std::size_t i) override;
  std::uint32_t n_fallback_steps() const noexcept override { return 0; }
  std::uint64_t own_bytes() const noexcept override {
    return plan_.arena_bytes + fused_bytes_ + scratch_bytes_;
  }
  std::uint64_t most_bytes(const RunLimits& limits) const override;

 private:
  /// A run's parameters, owned.
  struct Run {
    std::vector<std::int32_t> ids, positions, output_rows;
    std::vector<std::uint32_t> pages;  // of all sequences
    std::vector<SequenceSpan> sequences;
    KvAccess* kv = nullptr;
    std::vector<TensorView> tensors;  // of device memory
    std::int32_t length = 0;          // T of the one sequence
    StepParams params;
  };

  ReferenceExecutable() = default;
  Result<void> check(const StepParams& params) const;
  Result<void> check_sequences(const StepParams& params) const;
  void copy(const StepParams& params);
  Result<void> take_tensors(const StepParams& params);
  Result<void> plan_fused();
  Result<void> run_steps(const std::stop_token& stop);
  Result<void> run_step_at(std::size_t i);
  Result<void> publish();
  TensorView view(const Operand& operand) const;
  std::string producer(const Operand& output) const;

  std::shared_ptr<Device> device_;
  Plan plan_;
  std::unique_ptr<DeviceBlock> arena_;
  std::vector<FusedSlots> slots_;       // per step
  std::unique_ptr<DeviceBlock> fused_;  // results between fused ops
  std::uint64_t fused_bytes_ = 0;
  std::uint64_t scratch_bytes_ = 0;  // most that a step's decomposition has taken
  std::vector<TensorView> step_inputs_, step_operands_;  // of the step that runs
  std::vector<MutableTensorView> step_outputs_;
  std::int64_t vocab_size_ = 0;  // 0: no step looks up token ids
  std::uint32_t kv_layers_ = 0;  // layers that steps read
  Run run_;
  bool pending_ = false, done_ = false;
  std::vector<std::unique_ptr<DeviceBlock>> uploads_;  // tensors, where the host's are not visible
  std::vector<std::vector<std::byte>> staging_;        // outputs, likewise
  std::vector<TensorView> published_;                  // one per plan output
};

}  // namespace cyb::reference
