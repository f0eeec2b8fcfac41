// TensorSession: a model that is a graph with named tensors in and out (no
// text), on one backend.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "paths/graph/tensor_forward.hpp"
#include "runtime/engine.hpp"

namespace cyb {

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

/// A step of the last run, for people.
struct StepRecord {
  std::string op;    // "Conv+Sigmoid+Mul": what ran as one
  std::string name;  // first output of the node
  bool fallback = false;
  StepTime time;  // of the steady clock
};

/// Size of a named dimension of the inputs, or of dimension AXIS of an input
/// ("INPUT.AXIS").
struct NamedSize {
  std::string name;
  std::int64_t size = 0;
};

struct TensorPlan {
  std::string backend;
  std::vector<std::string> inputs;  // "images f32 [1, 3, 640, 640]"
  MemoryPools bytes;
};

class TensorSession {
 public:
  /// Of the options, path ("auto" or "graph"), backend, isa, n_threads, exact,
  /// allow_fallback and fuse are looked at. Errors: D codes, BackendInit, G codes,
  /// MissingTensor, NotBuilt.
  static Result<std::unique_ptr<TensorSession>> open(std::shared_ptr<const Model> model,
                                                     const EngineOptions& options = {});

  const std::vector<GraphInput>& inputs() const noexcept { return forward_->inputs(); }
  const std::vector<std::string>& symbols() const noexcept { return forward_->symbols(); }
  const std::vector<std::string>& outputs() const noexcept { return forward_->outputs(); }
  const Backend& backend() const noexcept { return *backend_; }
  /// Peak bytes by pool so far.
  MemoryPools memory() const;

  /// One run; every input once, in any order, alive until the outputs have been
  /// read. Errors: InvalidInput (a name that is unknown, missing or given
  /// twice), then as TensorForward::run.
  Result<void> run(std::span<const NamedTensor> inputs, std::stop_token stop = {});
  /// State that ops keep from run to run (Scan, GatedDelta) is empty again.
  void reset() noexcept { forward_->reset(); }
  /// Output i of the last run; valid until the next one.
  Result<TensorView> output(std::size_t i) const { return forward_->output(i); }
  std::uint32_t n_fallback_steps() const noexcept { return forward_->n_fallback_steps(); }

  /// Measures the steps of the runs that follow; steps() then lists those of
  /// the last one in the order they ran.
  void measure(bool on) noexcept { forward_->measure(on); }
  std::vector<StepRecord> steps() const;
  /// There were more steps than are kept (rounds of loops).
  bool steps_cut() const noexcept { return forward_->log().cut; }

 private:
  TensorSession() = default;
  friend Result<TensorPlan> plan_tensor_session(std::shared_ptr<const Model> model,
                                                const EngineOptions& options,
                                                std::span<const NamedSize> sizes);
  static Result<std::unique_ptr<TensorSession>> open(std::shared_ptr<const Model> model,
                                                     const EngineOptions& options, bool measure);

  std::shared_ptr<const Model> model_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<WeightTable> weights_;
  std::uint64_t process_bytes_ = 0;         // resident before it was opened
  std::unique_ptr<TensorForward> forward_;  // destroyed before what it borrows
};

/// What one run of a graph takes, found without running it: its memory is laid
/// out for these input shapes. Errors: as TensorSession::open; InvalidInput for
/// a dimension without a size, a name that no input has, or shapes that depend
/// on data.
Result<TensorPlan> plan_tensor_session(std::shared_ptr<const Model> model,
                                       const EngineOptions& options,
                                       std::span<const NamedSize> sizes);

/// True for a model whose graph takes something else than `ids` and `pos`:
/// TensorSession runs it.
Result<bool> is_tensor_model(const Model& model);

/// "images f32 [N, 3, 640, 640]": one input for people.
std::string input_text(const GraphInput& input, std::span<const std::string> symbols);

}  // namespace cyb
