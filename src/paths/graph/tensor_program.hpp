// TensorProgram: a validated graph with named inputs and outputs, made ready for any shapes: dead
// nodes are gone, what depends on weights and constants alone is computed. Immutable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "model/model.hpp"
#include "ops/op.hpp"
#include "tensor/buffer.hpp"

namespace cyb {

/// An owned tensor in host memory. An empty one has a pointer too: it is not an absent one.
struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  Buffer bytes;

  static Result<HostTensor> allocate(DType dtype, const Shape& shape);
  TensorView view() const noexcept { return {dtype, shape, bytes.data()}; }
  MutableTensorView out() noexcept { return {dtype, shape, bytes.data()}; }
};

class TensorProgram {
 public:
  enum class Source : std::uint8_t { kAbsent, kInput, kNode, kWeight, kConstant };

  struct Value {
    std::string name;
    Source source = Source::kAbsent;
    std::uint32_t index = 0;     // of the input or the constant
    TensorSpec spec;             // as declared, stored or computed
    std::uint32_t last_use = 0;  // node; n_nodes() for an output of the graph
  };

  struct Node {
    Op op;
    std::string label;                           // "node 12 Conv"
    std::vector<std::uint32_t> inputs, outputs;  // value numbers; value 0 is absent
  };

  /// Validates and folds. `model` gives the weights and outlives the program.
  /// Errors: G codes, D5, MissingTensor, NotBuilt for state (KvCache).
  static Result<TensorProgram> prepare(const Graph& graph, const Model& model);

  const std::vector<Value>& values() const noexcept { return values_; }
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  std::uint32_t n_nodes() const noexcept { return static_cast<std::uint32_t>(nodes_.size()); }
  const std::vector<GraphInput>& inputs() const noexcept { return inputs_; }
  const std::vector<std::string>& symbols() const noexcept { return symbols_; }
  const std::vector<std::uint32_t>& input_values() const noexcept { return input_values_; }
  const std::vector<std::uint32_t>& output_values() const noexcept { return output_values_; }
  const std::vector<std::string>& output_names() const noexcept { return output_names_; }
  const HostTensor& constant(const Value& value) const noexcept { return constants_[value.index]; }
  std::uint64_t constant_bytes() const noexcept {
    std::uint64_t total = 0;
    for (const HostTensor& tensor : constants_) total += tensor.bytes.size();
    return total;
  }
  const Model& model() const noexcept { return *model_; }

  /// The bytes of a weight as they are stored, where its spec has the stored dtype.
  TensorView stored_weight(const Value& value) const noexcept;

 private:
  class Builder;

  const Model* model_ = nullptr;
  std::vector<std::string> symbols_;
  std::vector<GraphInput> inputs_;
  std::vector<std::string> output_names_;
  std::vector<std::uint32_t> input_values_, output_values_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<HostTensor> constants_;
};

}  // namespace cyb
