// Checking the bodies of control ops.
#include "model/graph_bodies.hpp"

#include <fmt/format.h>

#include <deque>
#include <unordered_map>

#include "base/limits.hpp"
#include "model/format_error.hpp"
#include "model/graph_names.hpp"
#include "ops/control/control.hpp"

namespace cyb {
namespace {

Error body_error(const GraphNode& node, std::size_t k, std::string_view code,
                 std::string_view what) {
  return node_error(code, node.id, op_info(node.op.tag).name,
                    fmt::format("{}: {}", body_name(node, k), what));
}

/// The error of a body with the place of the body before it.
Error inside(const GraphNode& node, std::size_t k, const Error& error) {
  std::string_view text = error.message();
  if (text.starts_with("graph: ")) text.remove_prefix(7);
  return body_error(node, k, error.code(), text);
}

bool may_be(const TensorSpec& a, const TensorSpec& b) {
  if (a.dtype != b.dtype || a.rank() != b.rank()) return false;
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (certainly_differ(a.dims[i], b.dims[i])) return false;
  }
  return true;
}

/// Specs of a graph's outputs, after it was found valid.
std::vector<TensorSpec> output_specs(const Graph& graph, const GraphTypes& types) {
  std::unordered_map<std::string_view, const TensorSpec*> specs;
  for (const GraphInput& input : graph.inputs) specs[input.name] = &input.spec;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (std::size_t k = 0; k < graph.nodes[i].outputs.size(); ++k)
      specs[graph.nodes[i].outputs[k]] = &types.node_outputs[i][k];
  }
  std::vector<TensorSpec> out;
  for (const std::string& name : graph.outputs) out.push_back(*specs.at(name));
  return out;
}

Result<void> check_border(const GraphNode& node, std::size_t k, std::string_view what,
                          std::span<const TensorSpec> got, std::span<const TensorSpec> want) {
  if (got.size() != want.size()) {
    return fail(
        body_error(node, k, "G05", fmt::format("{} {}s, needs {}", got.size(), what, want.size())));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (may_be(got[i], want[i])) continue;
    return fail(
        body_error(node, k, got[i].dtype != want[i].dtype ? "G09" : "G10",
                   fmt::format("{} {}: {}, expected {}", what, i, got[i].text(), want[i].text())));
  }
  return {};
}

}  // namespace

std::string_view body_name(const GraphNode& node, std::size_t k) noexcept {
  return op_info(node.op.tag).attrs[body_attrs(node.op.tag)[k]].name;
}

Result<Graph> decode_body(const GraphNode& node, std::size_t k) {
  auto graph = decode_graph(node.op.attrs.bytes(body_attrs(node.op.tag)[k]));
  if (!graph) return fail(inside(node, k, graph.error()));
  return graph;
}

Result<void> check_bodies(std::vector<BodyCheck> nodes, const WeightLookup& weights) {
  struct Item {
    BodyCheck check;
    std::size_t depth;
  };
  std::deque<Graph> graphs;  // nodes of the checks lie in them
  std::vector<Item> work;
  const auto add = [&work](std::vector<BodyCheck>& from, std::size_t depth) {
    for (BodyCheck& check : from) work.push_back({std::move(check), depth});
  };
  add(nodes, 1);
  while (!work.empty()) {
    const Item item = std::move(work.back());
    work.pop_back();
    const GraphNode& node = *item.check.node;
    if (item.depth > kMaxSubgraphDepth) {
      return fail(body_error(node, 0, "G04", fmt::format("deeper than {}", kMaxSubgraphDepth)));
    }
    const BodyTypes want = body_types(node.op, item.check.inputs, item.check.outputs);
    for (std::size_t k = 0; k < body_attrs(node.op.tag).size(); ++k) {
      CYB_ASSIGN(Graph decoded, decode_body(node, k));
      const Graph& body = graphs.emplace_back(std::move(decoded));
      std::vector<TensorSpec> inputs;
      for (const GraphInput& input : body.inputs) inputs.push_back(input.spec);
      CYB_TRY(check_border(node, k, "input", inputs, want.inputs));
      std::vector<BodyCheck> inner;
      const auto types = validate_one(body, weights, GraphUse::kBody, inner);
      if (!types) return fail(inside(node, k, types.error()));
      CYB_TRY(check_border(node, k, "output", output_specs(body, *types), want.outputs));
      add(inner, item.depth + 1);
    }
  }
  return {};
}

}  // namespace cyb
