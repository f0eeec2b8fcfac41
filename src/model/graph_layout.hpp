// Layered layout (Sugiyama's method, simply): layers by longest path, order inside a layer by the
// median of the neighbours, long edges bend around boxes through points of their own.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace cyb {

struct LayoutBox {
  double width = 0, height = 0;
  double x = 0, y = 0;  // result: the upper left corner
};

struct LayoutEdge {
  std::uint32_t from = 0, to = 0;  // from < to
  std::vector<std::pair<double, double>> points =
      {};  // result: from the lower rim to the upper rim
};

struct LayoutSize {
  double width = 0, height = 0;
};

/// Places boxes and edges; deterministic, about linear in boxes and crossed layers.
LayoutSize layout_layers(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges);

}  // namespace cyb
