// TensorForward: a graph with named tensors in and out, on one backend. Every set of input shapes
// is planned once; shapes that depend on data are planned when the data is there.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "paths/graph/control.hpp"
#include "paths/graph/stage.hpp"

namespace cyb {

class TensorForward {
 public:
  /// `weights` outlives the forward. Errors: G codes, D5, MissingTensor, NotBuilt.
  static Result<std::unique_ptr<TensorForward>> make(const Graph& graph, WeightTable& weights,
                                                     const TensorOptions& options = {});

  /// Names, dtypes and symbolic shapes of what run() takes.
  const std::vector<GraphInput>& inputs() const noexcept { return program_.inputs(); }
  const std::vector<std::string>& symbols() const noexcept { return program_.symbols(); }
  const std::vector<std::string>& outputs() const noexcept { return program_.output_names(); }

  /// One run. `inputs`: in the order of inputs(), alive until the outputs have been read.
  /// Errors: InvalidInput, those of the ops, OutOfMemory, Cancelled.
  Result<void> run(std::span<const TensorView> inputs, std::stop_token stop = {});
  /// The next run starts from empty state; a run that fails leaves the state as it was.
  void reset() noexcept;
  /// Output i of the last run, on the host; valid until the next one.
  Result<TensorView> output(std::size_t i) const;

  /// Measures every step of the runs that follow: Stage::times of path().
  void measure(bool on) noexcept { log_ = on ? &own_log_ : nullptr; }
  /// What the last run that was measured did.
  const StepLog& log() const noexcept { return own_log_; }
  /// Of the body of another forward: its steps go into that one's log.
  void record_into(StepLog* log) noexcept { log_ = log; }
  /// The stages of the last run, in order; a cancelled or failed one is the last.
  std::span<const Stage* const> path() const noexcept { return path_; }
  /// Plans that are kept, and about what they occupy.
  std::size_t n_plans() const noexcept { return n_plans_; }
  std::uint64_t plan_bytes() const noexcept { return plan_bytes_; }
  /// Most that the plans have taken, those of bodies included.
  std::uint64_t peak_bytes() const noexcept;
  /// Constants of the graph and their rearrangements.
  std::uint64_t constant_bytes() const noexcept { return weights_.own_bytes(); }
  /// Plans for inputs of these dtypes and shapes, without running: peak_bytes() is then what a run
  /// with them takes. The data is not looked at. Errors: as run(); InvalidInput where a shape
  /// depends on data, with the node that it comes from.
  Result<void> plan_for(std::span<const TensorView> inputs);

  /// Of the last run.
  std::uint32_t n_fallback_steps() const noexcept { return n_fallback_steps_; }
  std::uint32_t n_stages() const noexcept { return static_cast<std::uint32_t>(path_.size()); }

 private:
  /// A symbol's value and the input that gave it.
  struct Bound {
    std::int64_t value = -1;
    const GraphInput* by = nullptr;
  };

  TensorForward(TensorProgram program, WeightTable& weights, const TensorOptions& options)
      : program_(std::move(program)), weights_(program_, weights, options) {}
  Result<void> check_inputs(std::span<const TensorView> inputs);
  Result<void> check_dim(const GraphInput& input, std::size_t axis, std::int64_t given);
  StageState first_state(std::span<const TensorView> inputs) const;
  Result<TensorView> view(const StageSource& source) const;
  Result<Stage*> first_stage();
  Result<Stage*> next_stage(Stage& stage, const std::stop_token& stop);
  Result<std::vector<TensorSpec>> run_control(std::uint32_t node,
                                              std::span<const TensorView> inputs,
                                              const std::stop_token& stop);
  Result<void> run_stage(Stage& stage, const std::stop_token& stop);
  void note_built(Stage& stage);
  void make_room();
  bool drop_oldest();

  TensorProgram program_;
  ConstantWeights weights_;
  std::map<std::vector<std::int64_t>, std::unique_ptr<Stage>> first_;  // by input shapes
  std::map<std::uint32_t, std::unique_ptr<ControlFlow>> controls_;     // by node
  std::size_t n_plans_ = 0;
  std::uint64_t plan_bytes_ = 0, peak_plan_bytes_ = 0;
  std::uint64_t n_runs_ = 0;
  StepLog own_log_;
  StepLog* log_ = nullptr;          // own_log_, that of the graph around this one, or null
  std::vector<TensorView> inputs_;  // of the run
  std::vector<std::int64_t> key_;   // their shapes
  std::vector<Bound> bound_;        // per symbol
  std::vector<const Stage*> path_;  // stages of the run
  std::vector<TensorView> outputs_;
  std::vector<TensorView> tensors_;
  std::uint32_t n_fallback_steps_ = 0;
};

}  // namespace cyb
