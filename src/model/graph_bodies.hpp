// Bodies of control ops: graphs inside a graph's payloads. They are looked at from a list, never by
// recursion; how deep they lie is bounded.
#pragma once

#include <cstddef>
#include <string_view>

#include "model/graph.hpp"

namespace cyb {

/// Body `k` of an If or Loop (index into body_attrs). Errors: G01..G04, the body named.
Result<Graph> decode_body(const GraphNode& node, std::size_t k);
/// "then", "else", "body".
std::string_view body_name(const GraphNode& node, std::size_t k) noexcept;

/// What a body is held against.
struct BodyCheck {
  const GraphNode* node = nullptr;
  std::vector<TensorSpec> inputs, outputs;  // of the node
};

/// Every body below these nodes: it decodes, its inputs and outputs are what the op gives and
/// declares, and every rule of a graph holds. Errors: G01..G11, G12 for state in a body.
Result<void> check_bodies(std::vector<BodyCheck> nodes, const WeightLookup& weights);

/// The rules of one graph, its bodies aside: these are added to `bodies`.
Result<GraphTypes> validate_one(const Graph& graph, const WeightLookup& weights, GraphUse use,
                                std::vector<BodyCheck>& bodies);

}  // namespace cyb
