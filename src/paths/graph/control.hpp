// ControlFlow: a node that the forward runs itself, between two plans: If and Loop, whose bodies
// are forwards of their own, and ops that keep state from run to run. A Loop's bounds are errors,
// never a silent stop; state changes only with a run that succeeded.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "model/graph.hpp"
#include "paths/graph/tensor_options.hpp"
#include "paths/graph/tensor_program.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

class TensorForward;
struct StepLog;

inline constexpr std::int64_t kMaxLoopRounds = std::int64_t{1} << 24;

/// True for the nodes that are no step of a plan: If, Loop, Scan, GatedDelta.
bool runs_between_plans(OpTag tag) noexcept;

class ControlFlow {
 public:
  /// `weights` outlives it. Errors: as TensorForward::make.
  static Result<std::unique_ptr<ControlFlow>> make(const Op& op, WeightTable& weights,
                                                   const TensorOptions& options);
  ~ControlFlow();

  /// `inputs`: those of the node, on the host. Errors: those of the bodies, InvalidInput for a Loop
  /// of more than kMaxLoopRounds rounds, OutOfMemory, Cancelled.
  Result<void> run(std::span<const TensorView> inputs, const std::stop_token& stop);
  /// Of the last run; valid until the next one.
  std::span<const TensorView> outputs() const noexcept { return outputs_; }
  std::uint32_t n_fallback_steps() const noexcept { return n_fallback_steps_; }
  /// Most that the plans of the bodies have taken.
  std::uint64_t peak_bytes() const noexcept;
  /// The steps of the bodies go into `log`, null: they are not measured.
  void record_into(StepLog* log) noexcept;
  /// The run succeeded: what it left is the state of the next.
  void commit() noexcept;
  /// The next run starts from zeros.
  void reset() noexcept { state_.clear(); }

 private:
  explicit ControlFlow(const Op& op);
  struct Stack;  // one scanned output while it grows
  Result<void> run_branch(std::span<const TensorView> inputs, const std::stop_token& stop);
  Result<void> run_loop(std::span<const TensorView> inputs, const std::stop_token& stop);
  Result<void> run_state(std::span<const TensorView> inputs);
  Result<bool> end_round(std::size_t carried, std::vector<Stack>& stacks);
  Result<void> finish_loop(std::size_t carried, std::vector<Stack>& stacks);

  Op op_;
  std::vector<TensorSpec> declared_;
  std::vector<std::unique_ptr<TensorForward>> bodies_;
  std::vector<TensorView> outputs_;
  std::vector<HostTensor> carried_, next_;  // of a Loop
  std::vector<HostTensor> scanned_;
  std::vector<HostTensor> state_, next_state_, results_;  // of an op with state
  std::uint32_t n_fallback_steps_ = 0;
};

}  // namespace cyb
