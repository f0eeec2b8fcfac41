// GraphProgram: a validated graph prepared for running: constants folded, weights loaded, lifetimes
// known. Shapes stay symbolic; plan() binds them for one run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/plan.hpp"
#include "model/graph.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

class GraphProgram {
 public:
  /// Validates (G codes), folds nodes whose inputs are all weights or constants, loads weights.
  /// Errors: D5, MissingTensor.
  static Result<GraphProgram> prepare(const Graph& graph, WeightTable& weights);

  /// The plan of runs of one sequence with B = 1, S = n_new and P <= max_past; where
  /// takes_any_past() is false, of those with P = max_past.
  Result<Plan> plan(std::uint32_t n_new, std::uint32_t max_past) const;
  /// No attribute depends on P, and of every value at most one dimension does, as P itself.
  bool takes_any_past() const noexcept { return takes_any_past_; }

  /// Last dimension of the first output ("logits").
  std::uint32_t vocab_size() const noexcept { return vocab_size_; }
  const std::vector<KvLayerShape>& kv_layers() const noexcept { return kv_layers_; }

 private:
  struct Value {
    Operand::Kind kind = Operand::Kind::kNone;
    TensorSpec spec;
    const Weight* weight = nullptr;
    std::int8_t past_axis = -1;  // dimension that counts P
    std::uint32_t alias_of =
        0;  // index of the value whose memory this one shares; itself when none
    std::uint32_t last_use = 0;  // node index, of the whole alias group at its root
  };
  struct Node {
    Op op;
    std::string label;
    std::vector<std::uint32_t> inputs, outputs;  // value indices, 0: absent
    bool is_view = false;
  };
  class Builder;

  std::vector<std::string> symbols_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::uint32_t output_ = 0;
  bool takes_any_past_ = true;
  std::uint32_t vocab_size_ = 0;
  std::vector<KvLayerShape> kv_layers_;
};

}  // namespace cyb
