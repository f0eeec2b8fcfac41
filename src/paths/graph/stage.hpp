// Stages: a graph with concrete shapes, cut where a shape depends on data. A stage is one plan;
// what its last tensors say decides which stage comes next. Stages are built once per set of
// shapes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "paths/graph/tensor_options.hpp"
#include "paths/graph/tensor_program.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

/// A step for people.
struct StepInfo {
  std::string op;    // "Conv+Sigmoid+Mul"
  std::string name;  // of the node: its first output
  bool fallback = false;
};

/// The steps of a measured run in the order they ran, those of the bodies of If and Loop included.
struct StepLog {
  struct Entry {
    StepInfo step;
    StepTime time;
  };
  static constexpr std::size_t kMaxEntries = std::size_t{1} << 18;
  std::vector<Entry> entries;
  bool cut = false;  // there were more
};

/// Where the caller, or a later stage, finds a value during a run.
struct StageSource {
  enum class Kind : std::uint8_t { kInput, kStage, kHost, kControl };
  Kind kind = Kind::kHost;
  std::uint32_t stage = 0;  // kStage: how many stages ran before it; kControl: the node
  std::uint32_t index = 0;  // input of the graph, or output of the stage or node
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* host = nullptr;  // kHost
};

/// What is known about the values between two stages.
struct StageState {
  std::vector<TensorSpec> specs;                  // concrete where `known`
  std::vector<bool> known;                        // per value
  std::vector<std::optional<StageSource>> found;  // values computed by earlier stages, and inputs
};

struct Stage {
  std::unique_ptr<Executable> executable;  // null: nothing to run
  std::vector<StageSource> tensors;        // what the executable reads
  std::vector<HostTensor> constants;       // values that shapes alone decide
  std::vector<std::unique_ptr<Weight>> weights;
  std::uint32_t depth = 0;  // stages that run before
  std::uint32_t end = 0;    // first node that is not in it; the number of nodes: the last stage
  // Inputs of node `end`, whose data its output shapes depend on; nullopt: absent.
  std::vector<std::optional<StageSource>> awaited;
  std::vector<StageSource> outputs;  // of the graph, of the last stage
  StageState state;
  std::vector<StepInfo> steps;
  std::vector<StepTime> times;  // of the last run that was measured, one per step
  std::uint64_t bytes = 0;      // about what it occupies
  std::uint64_t used = 0;       // number of the last run that came here
  std::map<std::string, std::unique_ptr<Stage>> next;  // by the output shapes of node `end`
};

/// Weights of constants, shared by all stages of a program.
class ConstantWeights {
 public:
  ConstantWeights(const TensorProgram& program, WeightTable& weights, const TensorOptions& options)
      : program_(program), weights_(weights), options_(options) {}
  /// A weight or constant of the program for input `input` of `op`.
  Result<Operand> operand(std::uint32_t value, const Op& op, std::size_t input);
  const TensorProgram& program() const noexcept { return program_; }
  Backend& backend() const noexcept { return weights_.backend(); }
  const TensorOptions& options() const noexcept { return options_; }
  /// Bytes of the constants, packed ones included.
  std::uint64_t own_bytes() const noexcept;

 private:
  const TensorProgram& program_;
  WeightTable& weights_;
  TensorOptions options_;
  std::map<std::pair<std::uint32_t, WeightUse>, std::unique_ptr<Weight>> constants_;
};

/// The first stage of a run: `state` knows the inputs.
Result<std::unique_ptr<Stage>> build_first_stage(ConstantWeights& weights, StageState state);
/// The stage after `before`, whose awaited node has these output specs.
Result<std::unique_ptr<Stage>> build_next_stage(ConstantWeights& weights, const Stage& before,
                                                std::vector<TensorSpec> awaited_specs);

}  // namespace cyb
