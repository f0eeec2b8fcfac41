// Items are boxes and, on every layer that a long edge crosses, a bend of that edge.
#include "model/graph_layout.hpp"

#include <algorithm>
#include <numeric>

namespace cyb {
namespace {

constexpr double kGapX = 24, kGapY = 40, kBendWidth = 10, kMargin = 20;
constexpr std::size_t kMaxBends = 100000;  // beyond, long edges are straight
constexpr int kSweeps = 6, kPlacements = 8;

struct Item {
  double width = 0, height = 0, x = 0;
  std::uint32_t layer = 0;
  std::vector<std::uint32_t> up, down;  // items of the layers beside
};

class Layers {
 public:
  Layers(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges)
      : boxes_(boxes), edges_(edges) {}

  LayoutSize run() {
    assign_layers();
    add_bends();
    order();
    place();
    return finish();
  }

 private:
  void assign_layers() {
    items_.resize(boxes_.size());
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      items_[i].width = boxes_[i].width;
      items_[i].height = boxes_[i].height;
    }
    std::vector<std::vector<std::uint32_t>> into(boxes_.size()), out(boxes_.size());
    for (const LayoutEdge& edge : edges_) {
      into[edge.to].push_back(edge.from);
      out[edge.from].push_back(edge.to);
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      for (const std::uint32_t from : into[i])
        items_[i].layer = std::max(items_[i].layer, items_[from].layer + 1);
    }
    // What nothing feeds goes just above its first reader: an input used late stands late.
    for (std::size_t i = items_.size(); i-- > 0;) {
      if (!into[i].empty() || out[i].empty()) continue;
      std::uint32_t first = UINT32_MAX;
      for (const std::uint32_t to : out[i]) first = std::min(first, items_[to].layer);
      items_[i].layer = first - 1;
    }
  }

  void add_bends() {
    std::size_t n_bends = 0;
    chains_.resize(edges_.size());
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const std::uint32_t from = edges_[e].from, to = edges_[e].to;
      const std::uint32_t first = items_[from].layer + 1, last = items_[to].layer;
      std::uint32_t before = from;
      n_bends += last - first;
      for (std::uint32_t layer = first; n_bends <= kMaxBends && layer < last; ++layer) {
        const auto bend = static_cast<std::uint32_t>(items_.size());
        items_.push_back({kBendWidth, 0, 0, layer, {}, {}});
        link(before, bend);
        chains_[e].push_back(bend);
        before = bend;
      }
      link(before, to);
    }
    std::uint32_t n_layers = 0;
    for (const Item& item : items_) n_layers = std::max(n_layers, item.layer + 1);
    layers_.resize(n_layers);
    for (std::uint32_t i = 0; i < items_.size(); ++i) layers_[items_[i].layer].push_back(i);
  }

  void link(std::uint32_t upper, std::uint32_t lower) {
    if (items_[upper].layer + 1 != items_[lower].layer) return;
    items_[upper].down.push_back(lower);
    items_[lower].up.push_back(upper);
  }

  /// Positions 0, 1, 2, … in each layer, by the mean position of the neighbours.
  void order() {
    std::vector<double> rank(items_.size(), 0);
    const auto renumber = [&](const std::vector<std::uint32_t>& layer) {
      for (std::size_t k = 0; k < layer.size(); ++k) rank[layer[k]] = static_cast<double>(k);
    };
    for (const auto& layer : layers_) renumber(layer);
    const auto sort_by = [&](std::vector<std::uint32_t>& layer, bool down) {
      std::vector<std::pair<double, std::uint32_t>> keys;
      for (const std::uint32_t i : layer) {
        const auto& near = down ? items_[i].up : items_[i].down;
        double sum = 0;
        for (const std::uint32_t n : near) sum += rank[n];
        keys.emplace_back(near.empty() ? rank[i] : sum / static_cast<double>(near.size()), i);
      }
      std::ranges::stable_sort(keys, {}, &std::pair<double, std::uint32_t>::first);
      for (std::size_t k = 0; k < keys.size(); ++k) layer[k] = keys[k].second;
      renumber(layer);
    };
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      if (sweep % 2 == 0) {
        for (auto& layer : layers_) sort_by(layer, true);
      } else {
        for (std::size_t l = layers_.size(); l-- > 0;) sort_by(layers_[l], false);
      }
    }
  }

  /// Wished x: the mean centre of the neighbours; then no two may overlap.
  void place() {
    for (const auto& layer : layers_) {
      double x = 0;
      for (const std::uint32_t i : layer) {
        items_[i].x = x;
        x += items_[i].width + kGapX;
      }
    }
    for (int pass = 0; pass < kPlacements; ++pass) {
      const bool down = pass % 2 == 0;
      for (std::size_t k = 0; k < layers_.size(); ++k)
        place_layer(layers_[down ? k : layers_.size() - 1 - k], down);
    }
  }

  double wish(const Item& item, bool down) const {
    const auto& near = down ? item.up : item.down;
    if (near.empty()) return item.x;
    double sum = 0;
    for (const std::uint32_t n : near) sum += items_[n].x + items_[n].width / 2;
    return sum / static_cast<double>(near.size()) - item.width / 2;
  }

  void place_layer(const std::vector<std::uint32_t>& layer, bool down) {
    const std::size_t n = layer.size();
    std::vector<double> left(n), right(n);
    for (std::size_t k = 0; k < n; ++k) {  // pushed to the right only
      left[k] = wish(items_[layer[k]], down);
      if (k > 0) left[k] = std::max(left[k], left[k - 1] + items_[layer[k - 1]].width + kGapX);
    }
    for (std::size_t k = n; k-- > 0;) {  // pushed to the left only
      right[k] = wish(items_[layer[k]], down);
      if (k + 1 < n) right[k] = std::min(right[k], right[k + 1] - items_[layer[k]].width - kGapX);
    }
    for (std::size_t k = 0; k < n; ++k) items_[layer[k]].x = (left[k] + right[k]) / 2;
  }

  LayoutSize finish() {
    double min_x = 0, max_x = 0;
    for (const Item& item : items_) {
      min_x = std::min(min_x, item.x);
      max_x = std::max(max_x, item.x + item.width);
    }
    std::vector<double> top(layers_.size()), height(layers_.size());
    double y = kMargin;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (const std::uint32_t i : layers_[l]) height[l] = std::max(height[l], items_[i].height);
      top[l] = y;
      y += height[l] + kGapY;
    }
    for (std::size_t i = 0; i < boxes_.size(); ++i) {
      boxes_[i].x = items_[i].x - min_x + kMargin;
      boxes_[i].y = top[items_[i].layer];
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const LayoutBox &from = boxes_[edges_[e].from], &to = boxes_[edges_[e].to];
      auto& points = edges_[e].points;
      points = {{from.x + from.width / 2, from.y + from.height}};
      for (const std::uint32_t bend : chains_[e]) {
        const double x = items_[bend].x + kBendWidth / 2 - min_x + kMargin;
        points.emplace_back(x, top[items_[bend].layer]);
        points.emplace_back(x, top[items_[bend].layer] + height[items_[bend].layer]);
      }
      points.emplace_back(to.x + to.width / 2, to.y);
    }
    return {max_x - min_x + 2 * kMargin, y - kGapY + kMargin};
  }

  std::vector<LayoutBox>& boxes_;
  std::vector<LayoutEdge>& edges_;
  std::vector<Item> items_;                         // boxes first, then bends
  std::vector<std::vector<std::uint32_t>> chains_;  // bends of each edge, from top to bottom
  std::vector<std::vector<std::uint32_t>> layers_;
};

}  // namespace

LayoutSize layout_layers(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges) {
  return Layers(boxes, edges).run();
}

}  // namespace cyb
