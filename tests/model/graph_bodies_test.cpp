// Bodies of If and Loop in the graph part: both stored forms, and what a body is held against.
#include <gtest/gtest.h>

#include "base/limits.hpp"
#include "model/graph.hpp"
#include "model/graph_bodies.hpp"
#include "ops/control/control.hpp"

namespace cyb {
namespace {

using Names = std::vector<std::string>;

GraphNode node_of(std::uint32_t id, Op op, Names inputs, Names outputs) {
  return {id, std::move(op), 255, std::move(inputs), std::move(outputs)};
}

/// y = op(a), for a of f32 [3].
Graph body_of(OpTag tag, DType dtype = DType::kF32) {
  Graph graph;
  graph.symbols = {"B", "S", "P"};
  graph.inputs = {{"a", {dtype, {3}}}};
  graph.nodes = {node_of(0, make_op(tag).value(), {"a"}, {"y"})};
  graph.outputs = {"y"};
  return graph;
}

Op if_op(const Graph& yes, const Graph& no, std::vector<TensorSpec> outputs) {
  Op op{OpTag::kIf, {}};
  op.attrs.values = {encode_graph(yes), encode_graph(no), declared_outputs(outputs)};
  return op;
}

/// An If around two bodies that read x.
Graph graph_of(const Graph& yes, const Graph& no, DType declared = DType::kF32) {
  Graph graph;
  graph.symbols = {"B", "S", "P"};
  graph.inputs = {{"c", {DType::kBool, {}}}, {"x", {DType::kF32, {3}}}};
  graph.nodes = {node_of(0, if_op(yes, no, {{declared, {3}}}), {"c", "x"}, {"z"})};
  graph.outputs = {"z"};
  return graph;
}

Graph valid_graph() {
  return graph_of(body_of(OpTag::kNeg), body_of(OpTag::kAbs));
}

Result<GraphTypes> check(const Graph& graph) {
  return validate_graph(graph, [](std::string_view) { return std::nullopt; });
}

std::string code_of(const Graph& graph) {
  const auto types = check(graph);
  return types ? "valid" : std::string(types.error().code());
}

TEST(GraphBodies, BothFormsSayTheSame) {
  // A body in a body: its number in TOML is larger than that of the one around it.
  Graph outer = valid_graph();
  outer.inputs[1].name = "a";
  outer.nodes[0].inputs[1] = "a";
  outer.nodes[0].outputs = outer.outputs = {"y"};
  outer.inputs = {outer.inputs[1]};
  outer.nodes.insert(outer.nodes.begin(),
                     node_of(7,
                             make_op(OpTag::kConstant, {{"dtype", std::int64_t{5}},
                                                        {"bytes", std::vector{std::byte{1}}}})
                                 .value(),
                             {}, {"c"}));
  const Graph graph = graph_of(outer, body_of(OpTag::kAbs));
  ASSERT_TRUE(check(graph)) << check(graph).error().text();
  const std::vector<std::byte> bytes = encode_graph(graph);
  const auto back = decode_graph(bytes);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(encode_graph(*back), bytes);
  const std::string toml = write_graph_toml(graph);
  EXPECT_NE(toml.find("attrs = {then = 0, else = 1, outputs = [0, 1, 3]}"), std::string::npos)
      << toml;
  EXPECT_NE(toml.find("attrs = {then = 2, else = 3, outputs = [0, 1, 3]}"), std::string::npos)
      << toml;
  const auto parsed = parse_graph_toml(toml);
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(encode_graph(*parsed), bytes);
  EXPECT_EQ(write_graph_toml(*parsed), toml);
}

TEST(GraphBodies, TomlBodiesAreUsedOnceAndByAGraphBeforeThem) {
  const std::string toml = write_graph_toml(valid_graph());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = toml;
    text.replace(text.find(from), from.size(), to);
    const auto parsed = parse_graph_toml(text);
    return parsed ? std::string("valid") : parsed.error().text();
  };
  EXPECT_NE(with("else = 1", "else = 0").find("bad payload: else"), std::string::npos);
  EXPECT_NE(with("else = 1", "else = 2").find("bad payload: else"), std::string::npos);
  EXPECT_NE(with("else = 1", "else = -1").find("bad payload: else"), std::string::npos);
  EXPECT_NE(with("op = \"Neg\"", "op = \"If\"").find("bad payload"), std::string::npos);
  const std::string more = toml + "\n[[graphs]]\nsymbols = []\noutputs = []\n";
  EXPECT_EQ(parse_graph_toml(more).error().code(), "G04");
}

TEST(GraphBodies, ABodyIsHeldAgainstItsNode) {
  EXPECT_EQ(code_of(valid_graph()), "valid");
  // What the op gives, and what it declares.
  EXPECT_EQ(code_of(graph_of(body_of(OpTag::kNeg, DType::kF64), body_of(OpTag::kAbs))), "G09");
  EXPECT_EQ(code_of(graph_of(body_of(OpTag::kNeg), body_of(OpTag::kAbs), DType::kF16)), "G09");
  Graph two = body_of(OpTag::kNeg);
  two.inputs.push_back({"b", {DType::kF32, {3}}});
  EXPECT_EQ(code_of(graph_of(two, body_of(OpTag::kAbs))), "G05");
  Graph other = body_of(OpTag::kNeg);
  other.inputs[0].spec.dims = {4};
  EXPECT_EQ(code_of(graph_of(other, body_of(OpTag::kAbs))), "G10");
  // Rules inside, with the place of the body.
  Graph undefined = body_of(OpTag::kNeg);
  undefined.nodes[0].inputs[0] = "nothing";
  const auto types = check(graph_of(body_of(OpTag::kAbs), undefined));
  ASSERT_FALSE(types);
  EXPECT_EQ(types.error().text(),
            "graph: node 0 (If): else: node 0: \"nothing\" is not an input, an earlier output or "
            "a weight");
  // Bytes that are no graph.
  Graph broken = valid_graph();
  broken.nodes[0].op.attrs.values[0] = std::vector(20, std::byte{0});
  EXPECT_EQ(code_of(broken), "G01");
  // A value of the outside that was not given.
  Graph outside = body_of(OpTag::kNeg);
  outside.nodes[0].inputs[0] = "x";
  EXPECT_EQ(code_of(graph_of(outside, body_of(OpTag::kAbs))), "G08");
}

TEST(GraphBodies, DeclarationsAreChecked) {
  const auto with = [](std::vector<std::int64_t> outputs) {
    Graph graph = valid_graph();
    graph.nodes[0].op.attrs.values[2] = std::move(outputs);
    return code_of(graph);
  };
  EXPECT_EQ(with({0, 1, 3}), "valid");
  EXPECT_EQ(with({0, 1, -1}), "valid");
  for (const std::vector<std::int64_t>& bad : {std::vector<std::int64_t>{},
                                               {0},
                                               {0, 1},
                                               {0, 1, -2},
                                               {0, 9},
                                               {0, -1},
                                               {300, 0},
                                               {6, 0},
                                               {-1, 0}}) {
    EXPECT_EQ(with(bad), "G04");
  }
  EXPECT_EQ(with({0, 1, 3, 0, 0}), "G05");  // two outputs, one name
}

TEST(GraphBodies, DepthIsBounded) {
  Graph inner = body_of(OpTag::kNeg);
  const auto around = [](const Graph& body) {
    Graph graph = graph_of(body, body);
    graph.inputs = {{"a", {DType::kF32, {3}}}};
    graph.nodes[0].inputs[1] = "a";
    graph.nodes[0].op = if_op(body, body_of(OpTag::kNeg), {{DType::kF32, {3}}});
    graph.nodes.insert(graph.nodes.begin(),
                       node_of(1,
                               make_op(OpTag::kConstant, {{"dtype", std::int64_t{5}},
                                                          {"bytes", std::vector{std::byte{1}}}})
                                   .value(),
                               {}, {"c"}));
    return graph;
  };
  for (std::size_t i = 0; i < kMaxSubgraphDepth; ++i) inner = around(inner);
  EXPECT_EQ(code_of(inner), "valid");
  EXPECT_EQ(code_of(around(inner)), "G04");
}

TEST(GraphBodies, NoStateInABody) {
  Graph body;
  body.symbols = {"B", "S", "P"};
  body.inputs = {{"a", {DType::kF32, {1, 1, 1, 4}}}};
  body.nodes = {node_of(0, make_op(OpTag::kKvCache).value(), {"a", "a"}, {"k", "v"})};
  body.outputs = {"a"};
  Graph graph = graph_of(body, body);
  graph.inputs[1].spec.dims = {1, 1, 1, 4};
  graph.nodes[0].op = if_op(body, body, {{DType::kF32, {1, 1, 1, 4}}});
  EXPECT_EQ(code_of(graph), "G12");
}

}  // namespace
}  // namespace cyb
