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
  static Result<std::unique_ptr<TensorForward>> make(const Graph& graph, WeightTable& weights);

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

  /// Of the last run.
  std::uint32_t n_fallback_steps() const noexcept { return n_fallback_steps_; }
  std::uint32_t n_stages() const noexcept { return static_cast<std::uint32_t>(path_.size()); }

 private:
  TensorForward(TensorProgram program, WeightTable& weights)
      : program_(std::move(program)), weights_(program_, weights) {}
  Result<void> check_inputs(std::span<const TensorView> inputs) const;
  StageState first_state(std::span<const TensorView> inputs) const;
  Result<TensorView> view(const StageSource& source) const;
  Result<Stage*> first_stage();
  Result<Stage*> next_stage(Stage& stage, const std::stop_token& stop);
  Result<std::vector<TensorSpec>> run_control(std::uint32_t node,
                                              std::span<const TensorView> inputs,
                                              const std::stop_token& stop);
  Result<void> run_stage(const Stage& stage, const std::stop_token& stop);

  TensorProgram program_;
  ConstantWeights weights_;
  std::map<std::string, std::unique_ptr<Stage>> first_;             // by input shapes
  std::map<std::uint32_t, std::unique_ptr<ControlFlow>> controls_;  // by node
  std::size_t n_built_ = 0;
  std::vector<TensorView> inputs_;  // of the run
  std::vector<Stage*> path_;        // stages of the run
  std::vector<TensorView> outputs_;
  std::vector<TensorView> tensors_;
  std::uint32_t n_fallback_steps_ = 0;
};

}  // namespace cyb
