// Pictures of graphs: what becomes a box, that no box overlaps another, that text is escaped, and
// that thousands of nodes take no time.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "model/graph_boxes.hpp"
#include "model/graph_layout.hpp"

namespace cyb {
namespace {

struct Maker {
  Graph graph;
  Maker() { graph.symbols = {"B", "S", "P"}; }
  std::string input(std::string name) {
    graph.inputs.push_back({name, {DType::kF32, {Dim::symbol(0), 4}}});
    return name;
  }
  std::string node(OpTag tag, std::vector<std::string> inputs) {
    const auto id = static_cast<std::uint32_t>(graph.nodes.size());
    graph.nodes.push_back(
        {id, make_op(tag).value(), 255, std::move(inputs), {"v" + std::to_string(id)}});
    return graph.nodes.back().outputs[0];
  }
  Picture picture() const {
    const WeightLookup none = [](std::string_view) { return std::nullopt; };
    const auto types = validate_graph(graph, none);
    EXPECT_TRUE(types) << types.error().text();
    return graph_picture(graph, *types, none);
  }
};

TEST(GraphPicture, AStraightRunIsOneBoxAndABranchIsNot) {
  Maker m;
  const std::string x = m.input("x");
  const std::string a = m.node(OpTag::kRelu, {m.node(OpTag::kTanh, {x})});
  const std::string left = m.node(OpTag::kSigmoid, {a}), right = m.node(OpTag::kSilu, {a});
  m.graph.outputs = {m.node(OpTag::kAdd, {left, right})};
  const Picture p = m.picture();
  ASSERT_EQ(p.boxes.size(), 6u);  // x; Tanh Relu; Sigmoid; Silu; Add; the output
  EXPECT_EQ(p.boxes[1].lines.size(), 2u);
  EXPECT_EQ(p.boxes[1].lines[1].op, "Relu");
  EXPECT_EQ(p.boxes[1].lines[1].detail, "\u2192 f32 [B, 4]");
  ASSERT_EQ(p.edges.size(), 6u);
  for (const PictureEdge& e : p.edges) EXPECT_LT(e.from, e.to);
}

TEST(GraphPicture, AConstantIsShownWhereItIsRead) {
  Maker m;
  const std::string x = m.input("x");
  m.graph.nodes.push_back({0,
                           make_op(OpTag::kConstant, {{"dtype", std::int64_t{0}},
                                                      {"shape", std::vector<std::int64_t>{4}},
                                                      {"bytes", std::vector<std::byte>(16)}})
                               .value(),
                           255,
                           {},
                           {"c"}});
  m.graph.outputs = {m.node(OpTag::kAdd, {x, "c"})};
  const Picture p = m.picture();
  ASSERT_EQ(p.boxes.size(), 3u);
  EXPECT_EQ(p.boxes[1].lines[0].detail, "W f32 [4] \u2192 f32 [B, 4]");
}

TEST(GraphPicture, BoxesDoNotOverlapAndEdgesGoDown) {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
  std::uint32_t seed = 1;
  const auto random = [&](std::uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
  };
  for (std::uint32_t i = 0; i < 300; ++i) {
    boxes.push_back({20.0 + random(200), 10.0 + random(60)});
    for (int k = 0; i > 0 && k < 2; ++k) {
      edges.push_back({i - 1 - random(std::min(i, k == 0 ? 5u : 60u)), i});
    }
  }
  const LayoutSize size = layout_layers(boxes, edges);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const LayoutBox& a = boxes[i];
    EXPECT_GE(a.x, 0);
    EXPECT_LE(a.x + a.width, size.width + 1e-6);
    EXPECT_LE(a.y + a.height, size.height + 1e-6);
    for (std::size_t j = i + 1; j < boxes.size(); ++j) {
      const LayoutBox& b = boxes[j];
      const bool apart = a.x + a.width <= b.x + 1e-6 || b.x + b.width <= a.x + 1e-6 ||
                         a.y + a.height <= b.y + 1e-6 || b.y + b.height <= a.y + 1e-6;
      ASSERT_TRUE(apart) << i << " and " << j;
    }
  }
  for (const LayoutEdge& edge : edges) {
    ASSERT_GE(edge.points.size(), 2u);
    EXPECT_TRUE(std::ranges::is_sorted(edge.points, {}, [](const auto& p) { return p.second; }));
  }
}

TEST(GraphPicture, NamesAreEscaped) {
  Maker m;
  const std::string x = m.input("a<b>&\"c\"");
  m.graph.outputs = {m.node(OpTag::kRelu, {x})};
  const std::string svg = write_graph_svg(m.picture(), "<script>");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;"), std::string::npos);
  const std::string dot = write_graph_dot(m.picture(), "\"");
  EXPECT_NE(dot.find("label=\"\\\"\""), std::string::npos);
}

TEST(GraphPicture, ThousandsOfNodes) {
  Maker m;
  std::string x = m.input("x");
  const std::string mask = m.input("mask");
  for (int i = 0; i < 2000; ++i) x = m.node(OpTag::kAdd, {x, m.node(OpTag::kMul, {x, mask})});
  m.graph.outputs = {x};
  const auto start = std::chrono::steady_clock::now();
  const std::string svg = write_graph_svg(m.picture(), "long");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(std::ranges::count(svg, '\n') > 4000, true);
}

}  // namespace
}  // namespace cyb
