// What a picture of a graph shows: boxes (straight runs of nodes that feed only each other are one
// box), and the tensors that go between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.hpp"

namespace cyb {

enum class BoxKind : std::uint8_t { kInput, kOutput, kNodes };

struct PictureLine {
  std::string op;      // "Conv"
  std::string detail;  // shapes of its result and of its weights, for people
};

struct PictureBox {
  BoxKind kind = BoxKind::kNodes;
  std::vector<PictureLine> lines;
};

struct PictureEdge {
  std::uint32_t from = 0, to = 0;  // boxes; from < to
  std::string text;                // shape of the tensor
};

struct Picture {
  std::vector<PictureBox> boxes;  // in an order in which every edge goes forward
  std::vector<PictureEdge> edges;
};

/// `types` are those of validate_graph(graph, weights). Dead nodes are left out.
Picture graph_picture(const Graph& graph, const GraphTypes& types, const WeightLookup& weights);

/// Graphviz, left to the reader's own layout program.
std::string write_graph_dot(const Picture& picture, std::string_view title);
/// A drawing of its own: layers from top to bottom, scales to thousands of nodes.
std::string write_graph_svg(const Picture& picture, std::string_view title);

}  // namespace cyb
