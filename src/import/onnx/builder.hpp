// Builder: a graph of ours under construction. Ops are named as in ops/op_list.inc; what is small
// and constant is folded through the op's own reference, and integer tensors that are made of
// dimensions are followed as expressions, so that a shape computed in the source becomes an
// attribute here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/onnx/tensor.hpp"
#include "model/graph.hpp"

namespace cyb::onnx {

/// A value of the graph; 0 is "absent".
using Val = std::uint32_t;

/// A tensor that is stored beside the graph.
struct BuiltWeight {
  std::string name;
  HostTensor tensor;
  bool transposed = false;  // the last two dimensions are swapped when it is written

  Shape shape() const;
};

struct BuiltGraph {
  Graph graph;
  std::vector<BuiltWeight> weights;
  std::vector<std::pair<std::string, std::string>> renamed;  // inputs and outputs: from, to
};

class Builder {
 public:
  Builder();

  /// The symbol of that name; "" is an anonymous dimension.
  Dim symbol(std::string_view name);
  const std::vector<std::string>& symbols() const noexcept { return graph_.symbols; }
  Result<Val> input(std::string_view name, TensorSpec spec);
  /// A tensor that is known now. `name`: wished name of the weight, may be empty.
  Val constant(HostTensor tensor, std::string_view name = {});
  /// One op. Attributes that are not given are 0 or empty. Errors: NotBuilt for an op that does not
  /// exist (yet), those of its shape rule.
  Result<std::vector<Val>> emit(std::string_view op, std::vector<NamedAttr> attrs,
                                std::vector<Val> inputs);
  /// i64 [rank] of the dimensions of a value.
  Result<Val> shape_of(Val value);
  /// A constant matrix with its last two dimensions swapped; nullopt where `value` is no constant.
  std::optional<Val> transposed(Val value);

  const TensorSpec& spec(Val value) const { return values_[value].spec; }
  /// Null where the value is not known at import.
  const HostTensor* known(Val value) const;
  /// The elements of an integer tensor of rank 0 or 1 as dimensions, where they are.
  std::optional<std::vector<Dim>> dims(Val value) const;
  /// The name that the source gives to a value: kept if it can be.
  void prefer_name(Val value, std::string_view name);

  // Bodies of If and Loop, in builder_regions.cpp. Region 0 is the graph itself; values of the
  // regions around one are read in it as they are: what crosses the border is found by finish().

  /// A region inside the current one, which it becomes, with inputs of these specs.
  std::uint32_t begin_region(std::span<const TensorSpec> inputs);
  const std::vector<Val>& region_inputs(std::uint32_t region) const {
    return regions_[region].inputs;
  }
  /// Back to the region around it.
  Result<void> end_region(std::span<const Val> outputs);
  /// The same; nothing of it will be used.
  void drop_region() { region_ = regions_[region_].parent; }
  /// If (inputs: condition) or Loop (count, condition, carried) with these bodies; `outputs` is
  /// what is known of them.
  Result<std::vector<Val>> emit_control(OpTag tag, std::vector<Val> inputs,
                                        std::vector<std::uint32_t> bodies,
                                        std::vector<TensorSpec> outputs);

  std::size_t n_nodes() const noexcept { return nodes_.size(); }
  /// `outputs`: name and value of each output. Nodes that no output needs are left out.
  Result<BuiltGraph> finish(std::span<const std::pair<std::string, Val>> outputs);

 private:
  enum class Origin : std::uint8_t { kNone, kInput, kConstant, kNode };  // kInput: of a region too

  struct Value {
    TensorSpec spec;
    Origin origin = Origin::kNone;
    std::string name;  // wished, then given
    std::optional<HostTensor> constant;
    bool transposed = false;  // a constant that is only a weight
    std::uint32_t node = 0;
    std::uint32_t region = 0;  // where it is defined
  };
  struct Node {
    Op op;
    std::vector<Val> inputs, outputs;
    std::uint32_t region = 0;
    std::vector<std::uint32_t> bodies = {};  // regions
  };
  struct Region {
    std::uint32_t parent = 0;
    std::vector<Val> inputs, outputs;
  };

  Val add(Value value);
  /// Adds the node in the region at hand, with a value of its own for each of `outputs`.
  std::vector<Val> add_node(Node node, std::vector<TensorSpec> outputs);
  Result<std::optional<std::vector<Val>>> fold(const Op& op, std::span<const Val> inputs);
  /// A value whose elements are these dimensions: a constant where they are numbers.
  Result<Val> with_dims(Val value, std::vector<Dim> dims);
  // finish(), in builder_finish.cpp
  struct Finishing;
  struct Part;
  std::string give_name(std::string_view wished, std::string_view fallback, bool weight);
  std::vector<bool> live_nodes(std::span<const Val> outputs) const;
  Val copied(Val value, Op identity);
  std::vector<std::vector<Val>> captures(const std::vector<bool>& live) const;
  Result<void> finish_node(std::size_t i, Finishing& f);
  Result<void> finish_bodies(std::size_t i, std::vector<Val>& inputs, Finishing& f);
  Result<std::vector<Val>> name_outputs(std::span<const std::pair<std::string, Val>> outputs,
                                        BuiltGraph& out);
  Result<std::string> operand(Val value, const Op& op, std::size_t k, Finishing& f, Part& part);
  std::string constant_node(const HostTensor& tensor, Part& part);
  Result<std::string> weight(Val value, Finishing& f, Part& part);

  Graph graph_;  // symbols and inputs
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Region> regions_;  // 0: the graph itself
  std::uint32_t region_ = 0;     // the current one
  std::map<std::string, std::uint32_t, std::less<>> symbol_ids_;
  std::set<std::string, std::less<>> symbol_names_;
  std::vector<Val> input_values_;
  std::map<Val, Val> transposed_;
  std::set<std::string, std::less<>> taken_;  // names
  std::uint64_t folded_bytes_ = 0;
};

/// Runs the reference of an op on tensors; absent inputs have no bytes. Nullopt where the op has no
/// reference of its own (state, fused ops). Errors: those of the op.
Result<std::optional<std::vector<HostTensor>>> run_reference(const Op& op,
                                                             std::span<const TensorView> inputs);

}  // namespace cyb::onnx
