// Frame: a list of nodes while it is walked: the graph, the body of a function, the branch of an
// If, or one round of a Loop.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json_text.hpp"
#include "import/onnx/builder.hpp"
#include "import/onnx/control.hpp"
#include "import/onnx/proto.hpp"
#include "import/onnx/rounds.hpp"

namespace cyb::onnx {

using Names = std::unordered_map<std::string_view, Val>;

struct Frame {
  std::span<const NodeProto> nodes;
  std::size_t next = 0;
  Names names;
  std::size_t outer = SIZE_MAX;           // frame whose names are seen too
  const NodeProto* call = nullptr;        // the node that this frame computes
  std::vector<std::string_view> outputs;  // of the body, in the order of the call's outputs
  std::span<const OpsetId> opsets;
  std::span<const AttributeProto> defaults;
  std::shared_ptr<const GraphProto> own;            // a parsed sub-graph
  std::unordered_set<std::string_view> nan_tested;  // what IsNaN and Where read
  std::shared_ptr<Rounds> rounds;                   // of a Scan or Loop
  std::shared_ptr<Control> control;                 // of what the run decides
  std::deque<NodeProto> resolved;                   // nodes whose attributes came from the call
};

inline std::string shown_op(const NodeProto& node) {
  return node.domain.empty() ? std::string(node.op_type)
                             : fmt::format("{}.{}", node.domain, node.op_type);
}

inline std::string shown_node(const NodeProto& node) {
  const std::string_view name = !node.name.empty()     ? node.name
                                : node.outputs.empty() ? std::string_view()
                                                       : node.outputs[0];
  return fmt::format("node {} ({})", json_quote(name), shown_op(node));
}

/// The ops with bodies.
inline bool has_graphs(const NodeProto& node) {
  return node.domain.empty() &&
         (node.op_type == "If" || node.op_type == "Loop" || node.op_type == "Scan");
}

}  // namespace cyb::onnx
