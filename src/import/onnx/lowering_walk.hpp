// Lowering: the walk over the nodes of a model. Bodies are frames on a stack of bounded depth; the
// number of lowered nodes is bounded too, since functions may call functions.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "import/onnx/control.hpp"
#include "import/onnx/frame.hpp"
#include "import/onnx/lowering.hpp"
#include "import/onnx/rounds.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {

class Lowering {
 public:
  Lowering(const ModelProto& model, ExternalFiles& files, const FixedDims& dims)
      : model_(model), files_(files), dims_(dims) {
    for (const FunctionProto& f : model.functions) {
      const std::string_view domain = f.domain == "ai.onnx" ? std::string_view() : f.domain;
      functions_.emplace(std::array{domain, f.name, f.overload}, &f);
    }
  }
  Result<Lowered> run();

 private:
  Result<std::int64_t> opset_of(std::span<const OpsetId> opsets, std::string_view domain) const;
  const FunctionProto* find_function(const NodeProto& node) const;
  /// Every op has a row or a function; else all that have none, with their counts.
  Result<void> check_ops() const;
  Result<void> add_initializers(const GraphProto& graph, Frame& frame);
  Result<void> check_declared(const ValueInfo& output, const TensorSpec& spec);
  Result<void> add_inputs(Frame& frame);
  /// `named`: the names of the dimensions before it.
  Dim input_dim(const ValueInfo& input, const DimProto& dim, std::vector<std::string_view>& named);
  Result<Val> lookup(std::string_view name);
  Result<void> walk();
  Result<void> lower(const NodeProto& source);
  Result<void> define(const NodeProto& node, std::span<const Val> values);
  /// The node with attributes that refer to those of the call in their place.
  Result<const NodeProto*> resolve(const NodeProto& source);
  Result<void> enter(const NodeProto& node, const FunctionProto& f);
  /// A NaN may be tested for, or be replaced where a mask says so; converted before that or not.
  void push(Frame frame);
  /// An If, Loop or Scan: what is known at import is put in place, the rest stays one op.
  Result<void> lower_control(const NodeProto& node, std::int64_t opset,
                             std::span<const Val> inputs);
  /// An If whose condition is known: the branch that is taken.
  Result<void> decide(const NodeProto& node, bool condition);
  Result<Frame> body_frame(const NodeProto& node, std::shared_ptr<const GraphProto> graph);
  /// The next body of an op that stays, or its outputs.
  Result<void> next_body(std::shared_ptr<Control> control);
  /// One more round, or the outputs of a Scan or Loop whose rounds are over.
  Result<void> next_round(std::shared_ptr<Rounds> rounds);
  Result<void> leave();

  const ModelProto& model_;
  ExternalFiles& files_;
  const FixedDims& dims_;
  std::set<std::string, std::less<>> fixed_, symbols_;  // names of dimensions
  Builder builder_;
  std::map<std::array<std::string_view, 3>, const FunctionProto*> functions_;
  std::deque<Frame> frames_;
  std::vector<std::pair<std::string_view, Val>> initializers_;  // of the main graph
  std::unordered_set<Val> read_;                                // values that some node takes
  Lowered out_;
};

}  // namespace cyb::onnx
