// The walk into bodies: functions, branches, rounds, and what the run decides.
#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/onnx/lowering_walk.hpp"

namespace cyb::onnx {
namespace {

/// The branch `name` with its constants left out; empty where there is none or it does not parse.
std::vector<NodeProto> branch_nodes(const NodeProto& node, std::string_view name,
                                    std::optional<GraphProto>& graph) {
  const auto at = std::ranges::find(node.attributes, name, &AttributeProto::name);
  if (at == node.attributes.end() || at->type != AttributeType::kGraph) return {};
  auto parsed = parse_graph(at->message);
  if (!parsed) return {};
  graph = *std::move(parsed);
  std::vector<NodeProto> out = graph->nodes;
  std::erase_if(out, [](const NodeProto& n) { return n.op_type == "Constant"; });
  return out;
}

/// What torch exports for x.squeeze(axis): Squeeze(x, axis) where the dimension is 1, else x. Its
/// rank is known only if it is taken to be the first; Squeeze refuses a dimension that is not 1.
bool is_squeeze(const NodeProto& node) {
  std::optional<GraphProto> yes, no;
  const std::vector<NodeProto> then = branch_nodes(node, "then_branch", yes);
  const std::vector<NodeProto> other = branch_nodes(node, "else_branch", no);
  if (node.outputs.size() != 1 || then.size() != 1 || other.size() != 1) return false;
  const NodeProto &squeeze = then[0], &same = other[0];
  const bool axes = squeeze.inputs.size() == 2 || !squeeze.attributes.empty();
  return squeeze.op_type == "Squeeze" && axes && same.op_type == "Identity" &&
         same.inputs.size() == 1 && squeeze.inputs[0] == same.inputs[0];
}

}  // namespace

Result<void> Lowering::enter(const NodeProto& node, const FunctionProto& f) {
  if (frames_.size() > kMaxSubgraphDepth)
    return fail(invalid_input(fmt::format("functions deeper than {}", kMaxSubgraphDepth)));
  if (node.inputs.size() > f.inputs.size() || node.outputs.size() > f.outputs.size())
    return fail(onnx_error("more inputs or outputs than the function has"));
  Frame frame;
  frame.nodes = f.nodes;
  frame.call = &node;
  frame.opsets = f.opsets;
  frame.defaults = f.defaults;
  frame.outputs = f.outputs;
  for (std::size_t k = 0; k < f.inputs.size(); ++k) {
    CYB_ASSIGN(const Val value,
               lookup(k < node.inputs.size() ? node.inputs[k] : std::string_view()));
    frame.names.emplace(f.inputs[k], value);
  }
  push(std::move(frame));
  return {};
}

void Lowering::push(Frame frame) {
  for (const NodeProto& node : frame.nodes | std::views::reverse) {
    const bool tests = node.op_type == "IsNaN" || node.op_type == "Where";
    const bool passes =
        node.op_type == "Cast" || node.op_type == "CastLike" || node.op_type == "Identity";
    if (tests) frame.nan_tested.insert(node.inputs.begin(), node.inputs.end());
    const bool passed = passes && !node.outputs.empty() && !node.inputs.empty() &&
                        frame.nan_tested.contains(node.outputs[0]);
    if (passed) frame.nan_tested.insert(node.inputs[0]);
  }
  frames_.push_back(std::move(frame));
}

Result<void> Lowering::lower_control(const NodeProto& node, std::int64_t opset,
                                     std::span<const Val> inputs) {
  std::shared_ptr<Rounds> rounds;
  if (node.op_type == "If") {
    const HostTensor* condition =
        inputs.size() == 1 && inputs[0] != 0 ? builder_.known(inputs[0]) : nullptr;
    if (condition != nullptr && condition->dtype == DType::kBool && condition->bytes.size() == 1)
      return decide(node, condition->bytes[0] != std::byte{0});
    if (is_squeeze(node)) {
      out_.assumptions.push_back(fmt::format(
          "{} squeezes a dimension: a run where it is not 1 is an error", shown_node(node)));
      return decide(node, true);
    }
  } else {
    if (opset < 9) return fail(not_built(fmt::format("{} of opset {}", node.op_type, opset)));
    CYB_ASSIGN(std::optional<Rounds> known, begin_rounds(node, inputs, builder_));
    if (known) return next_round(std::make_shared<Rounds>(*std::move(known)));
  }
  CYB_ASSIGN(Control control, begin_control(node, inputs, builder_));
  return next_body(std::make_shared<Control>(std::move(control)));
}

Result<Frame> Lowering::body_frame(const NodeProto& node, std::shared_ptr<const GraphProto> graph) {
  if (frames_.size() > kMaxSubgraphDepth)
    return fail(invalid_input(fmt::format("sub-graphs deeper than {}", kMaxSubgraphDepth)));
  Frame frame;
  frame.nodes = graph->nodes;
  frame.outer = frames_.size() - 1;
  frame.call = &node;
  frame.opsets = frames_.back().opsets;
  for (const ValueInfo& output : graph->outputs) frame.outputs.push_back(output.name);
  CYB_TRY(add_initializers(*graph, frame));
  frame.own = std::move(graph);
  return frame;
}

Result<void> Lowering::decide(const NodeProto& node, bool condition) {
  const std::string_view branch = condition ? "then_branch" : "else_branch";
  const auto at = std::ranges::find(node.attributes, branch, &AttributeProto::name);
  if (at == node.attributes.end() || at->type != AttributeType::kGraph)
    return fail(onnx_error(fmt::format("no {}", branch)));
  CYB_ASSIGN(GraphProto parsed, parse_graph(at->message));
  CYB_ASSIGN(Frame frame, body_frame(node, std::make_shared<GraphProto>(std::move(parsed))));
  if (node.outputs.size() > frame.outputs.size())
    return fail(onnx_error("more outputs than the branch has"));
  push(std::move(frame));
  return {};
}

Result<void> Lowering::next_body(std::shared_ptr<Control> control) {
  if (control->outputs.size() == control->graphs.size()) {
    ++out_.op_counts[shown_op(*control->node)];
    CYB_ASSIGN(const std::vector<Val> values, finish_control(*control, builder_));
    return define(*control->node, values);
  }
  CYB_ASSIGN(Frame frame, body_frame(*control->node, open_graph(*control)));
  CYB_ASSIGN(const auto inputs, open_body(*control, builder_));
  for (const auto& [name, value] : inputs) frame.names.insert_or_assign(name, value);
  frame.control = std::move(control);
  push(std::move(frame));
  return {};
}

Result<void> Lowering::next_round(std::shared_ptr<Rounds> rounds) {
  if (rounds->done >= rounds->count) {
    CYB_ASSIGN(const std::vector<Val> values, finish_rounds(*rounds, builder_));
    return define(*rounds->node, values);
  }
  CYB_ASSIGN(Frame frame, body_frame(*rounds->node, rounds->body));
  CYB_ASSIGN(const auto inputs, round_inputs(*rounds, builder_));
  for (const auto& [name, value] : inputs) frame.names.insert_or_assign(name, value);
  frame.rounds = std::move(rounds);
  push(std::move(frame));
  return {};
}

Result<void> Lowering::leave() {
  std::vector<Val> values;
  const std::shared_ptr<Rounds> rounds = frames_.back().rounds;
  const std::shared_ptr<Control> control = frames_.back().control;
  const std::size_t n =
      rounds || control ? frames_.back().outputs.size() : frames_.back().call->outputs.size();
  for (std::size_t k = 0; k < n; ++k) {
    CYB_ASSIGN(const Val value, lookup(frames_.back().outputs[k]));
    values.push_back(value);
  }
  // The node lies in the frame below, or in what that frame keeps alive.
  const NodeProto* call = frames_.back().call;
  frames_.pop_back();
  if (control) {
    CYB_TRY(close_body(*control, values, builder_));
    return next_body(control);
  }
  if (!rounds) return define(*call, values);
  if (run_decides(*rounds, values, builder_)) {  // from the start, as a Loop
    CYB_ASSIGN(Control kept, begin_control(*call, rounds->given, builder_));
    return next_body(std::make_shared<Control>(std::move(kept)));
  }
  CYB_ASSIGN(const bool more, end_round(*rounds, values, builder_));
  if (!more) rounds->count = rounds->done;
  return next_round(rounds);
}

}  // namespace cyb::onnx
