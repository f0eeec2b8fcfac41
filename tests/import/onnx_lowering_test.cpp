// Lowering: graphs by the onnx package give what its ReferenceEvaluator computes, shapes that the
// source computes become attributes, and the written model passes every check of a reader.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/half.hpp"
#include "conformance/onnx_backend/graph_run.hpp"
#include "import/import.hpp"
#include "import/onnx_support.hpp"
#include "model/model.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::onnx {
namespace {

const std::string kGolden = std::string(CYB_TESTS_DIR) + "/golden/onnx/";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Shape shape_of(const nlohmann::json& row) {
  const auto dims = row.at("shape").get<std::vector<std::int64_t>>();
  return Shape{std::span<const std::int64_t>(dims)};
}

HostTensor floats(const nlohmann::json& row) {
  std::byte* data = nullptr;
  const bool half = row.at("dtype") == "float16";
  auto out = HostTensor::allocate(half ? DType::kF16 : DType::kF32, shape_of(row), data);
  const auto values = row.at("values").get<std::vector<float>>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = f32_to_f16(values[i]);
    if (half) std::memcpy(data + 2 * i, &bits, sizeof bits);
    if (!half) std::memcpy(data + 4 * i, &values[i], sizeof(float));
  }
  return *out;
}

/// The name of an input or output here.
std::string name_in(const BuiltGraph& built, const std::string& name) {
  for (const auto& [from, to] : built.renamed) {
    if (from == name) return to;
  }
  return name;
}

std::vector<double> numbers(const HostTensor& tensor) {
  if (const auto ints = tensor.ints()) return {ints->begin(), ints->end()};
  const auto* data = tensor.view().as<float>();
  return {data, data + tensor.shape.count()};
}

TEST(OnnxLowering, GoldenModelsGiveTheReferenceEvaluatorsValues) {
  for (const std::string name : {"typed_tensors", "mlp", "functions", "outputs", "halves", "names",
                                 "rounds", "branches", "branches_deep", "branches_else", "loops"}) {
    SCOPED_TRACE(name);
    const std::string bytes = test::read_file(kGolden + name + ".onnx");
    const auto expect = nlohmann::json::parse(test::read_file(kGolden + name + ".json"));
    const auto lowered = test::import_case(as_bytes(bytes), "");
    ASSERT_TRUE(lowered.has_value()) << lowered.error().text();
    const auto weights = test::weights_of(lowered->built);
    ASSERT_TRUE(weights.has_value());
    const auto graph = test::stored(lowered->built, *weights);
    ASSERT_TRUE(graph.has_value()) << graph.error().text();
    test::Tensors values;
    for (const auto& row : expect.at("inputs"))
      values.emplace(name_in(lowered->built, row.at("name")), floats(row));
    const auto done = test::run_nodes(*graph, *weights, values);
    ASSERT_TRUE(done.has_value()) << done.error().text();
    ASSERT_EQ(graph->outputs.size(), expect.at("outputs").size());
    for (std::size_t k = 0; k < graph->outputs.size(); ++k) {
      const auto& row = expect.at("outputs").at(k);
      EXPECT_EQ(graph->outputs[k], name_in(lowered->built, row.at("name")));
      const HostTensor& got = values.at(graph->outputs[k]);
      EXPECT_EQ(got.shape, shape_of(row));
      const std::vector<double> have = numbers(got);
      const auto want = row.at("values").get<std::vector<double>>();
      ASSERT_EQ(have.size(), want.size());
      const double tolerance = name == "halves" ? 1e-3 : 1e-6;  // classes M and E of f16 and f32
      double largest = 1;
      for (const double v : want) largest = std::max(largest, std::abs(v));
      for (std::size_t i = 0; i < want.size(); ++i)
        EXPECT_LE(std::abs(have[i] - want[i]), tolerance * largest) << i;
    }
  }
}

TEST(OnnxLowering, NamesOfTheGraphAreFreeOrChangedAndSaid) {
  const std::string bytes = test::read_file(kGolden + "names.onnx");
  const auto lowered = test::import_case(as_bytes(bytes), "");
  ASSERT_TRUE(lowered.has_value());
  const BuiltGraph& built = lowered->built;
  EXPECT_EQ(name_in(built, "model.x"), "input_0");
  EXPECT_EQ(name_in(built, "cyb.result"), "output_0");
  ASSERT_EQ(built.weights.size(), 1U);  // the mask has infinities, which no weight may have
  EXPECT_EQ(built.weights[0].name, "lm_head.weight");
  EXPECT_EQ(built.weights[0].shape(), Shape{720});  // stored tensors have at most 5 dimensions
}

TEST(OnnxLowering, ComputedShapesBecomeAttributes) {
  const std::string bytes = test::read_file(kGolden + "mlp.onnx");
  const auto lowered = test::import_case(as_bytes(bytes), "");
  ASSERT_TRUE(lowered.has_value());
  std::vector<std::string_view> ops;
  for (const GraphNode& node : lowered->built.graph.nodes) ops.push_back(op_info(node.op.tag).name);
  EXPECT_EQ(std::ranges::count(ops, "Shape"), 0);
  EXPECT_EQ(std::ranges::count(ops, "Concat"), 0);
  EXPECT_EQ(std::ranges::count(ops, "Reshape"), 1);
  EXPECT_EQ(std::ranges::count(ops, "Matmul"), 1);
}

Result<Lowered> lowered_with(const std::string& bytes, const FixedDims& dims) {
  CYB_ASSIGN(const ModelProto model, parse_model(as_bytes(bytes)));
  ExternalFiles files("");
  return lower_model(model, files, dims);
}

TEST(OnnxLowering, NamedDimensionsMayDifferWithinAnInputAndCanBeFixed) {
  test::Proto graph;
  graph.message(1, test::onnx_node("Neg", {"x"}, "y"));
  graph.message(11, test::onnx_value("x", {-1, -1, 3}));
  graph.message(12, test::onnx_value("y", {-1, -1, 3}));
  const std::string bytes = test::onnx_model(graph);
  const auto open = lowered_with(bytes, {});
  ASSERT_TRUE(open) << open.error().text();
  const std::vector<Dim>& dims = open->built.graph.inputs[0].spec.dims;
  EXPECT_EQ(dims_text(dims, open->built.graph.symbols), "[n, n_2, 3]");
  EXPECT_FALSE(dims[0] == dims[1]);
  ASSERT_EQ(open->assumptions.size(), 1U);
  EXPECT_EQ(open->assumptions[0], "input \"x\": dimensions of the name \"n\" may differ");
  const auto fixed = lowered_with(bytes, {{"n", 5}});
  ASSERT_TRUE(fixed) << fixed.error().text();
  EXPECT_EQ(dims_text(fixed->built.graph.inputs[0].spec.dims), "[5, 5, 3]");
  const auto unknown = lowered_with(bytes, {{"m", 5}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message(), "input: no input has a dimension \"m\"; there are: \"n\"");
}

std::string refusal_of(const std::string& bytes) {
  const auto lowered = lowered_with(bytes, {});
  return lowered ? "accepted" : lowered.error().text();
}

/// y = Neg(x), x and y [3], with whatever else.
test::Proto neg(std::initializer_list<std::string_view> inputs = {"x"},
                std::string_view op = "Neg") {
  test::Proto graph;
  graph.message(1, test::onnx_node(op, inputs, "y"));
  graph.message(11, test::onnx_value("x", {3}));
  return graph;
}

std::string with_opsets(std::initializer_list<std::uint64_t> versions) {
  test::Proto model;
  test::Proto graph = neg();
  graph.message(12, test::onnx_value("y", {3}));
  model.number(1, 8).message(7, graph);
  for (const std::uint64_t version : versions)
    model.message(8, test::Proto().bytes(1, "").number(2, version));
  return model.text();
}

TEST(OnnxLowering, FilesThatContradictThemselvesAreRefused) {
  test::Proto good = neg();
  good.message(12, test::onnx_value("y", {3}));
  EXPECT_EQ(refusal_of(test::onnx_model(good)), "accepted");
  test::Proto more = neg({"x", "x"}, "Relu");
  more.message(12, test::onnx_value("y", {3}));
  EXPECT_NE(refusal_of(test::onnx_model(more)).find("the node has 2 inputs, Relu takes 1"),
            std::string::npos)
      << refusal_of(test::onnx_model(more));
  test::Proto twice = neg();
  twice.message(11, test::onnx_value("x", {3})).message(12, test::onnx_value("y", {3}));
  EXPECT_NE(refusal_of(test::onnx_model(twice)).find("input \"x\" is there twice"),
            std::string::npos)
      << refusal_of(test::onnx_model(twice));
  const test::Proto half = test::Proto().number(1, 10);  // element type f16
  test::Proto typed = neg();
  typed.message(12, test::Proto().bytes(1, "y").message(2, test::Proto().message(1, half)));
  EXPECT_NE(refusal_of(test::onnx_model(typed)).find("output \"y\" is declared"), std::string::npos)
      << refusal_of(test::onnx_model(typed));
}

TEST(OnnxLowering, OpsetsAreKnownAndOne) {
  EXPECT_EQ(refusal_of(with_opsets({17})), "accepted");
  EXPECT_EQ(refusal_of(with_opsets({17, 17})), "accepted");
  EXPECT_EQ(refusal_of(with_opsets({28})), "accepted");
  EXPECT_NE(refusal_of(with_opsets({29})).find("opset 29, newer than 28"), std::string::npos);
  EXPECT_NE(refusal_of(with_opsets({17, 11})).find("has the opsets 17 and 11"), std::string::npos)
      << refusal_of(with_opsets({17, 11}));
}

TEST(OnnxLowering, AnotherShapeThanTheDeclaredOneIsSaid) {
  test::Proto graph = neg();
  graph.message(12, test::onnx_value("y", {4}));
  const auto lowered = lowered_with(test::onnx_model(graph), {});
  ASSERT_TRUE(lowered) << lowered.error().text();
  ASSERT_EQ(lowered->assumptions.size(), 1U);
  EXPECT_EQ(lowered->assumptions[0],
            "output \"y\" has the shape [3], not the one that the file declares");
}

TEST(OnnxLowering, BodiesShareWeightsAndTakeWhatTheyReadAsInputs) {
  const auto lowered = test::import_case(as_bytes(test::read_file(kGolden + "branches.onnx")), "");
  ASSERT_TRUE(lowered) << lowered.error().text();
  ASSERT_EQ(lowered->built.weights.size(), 1U);  // read outside, and two bodies deep
  const auto& nodes = lowered->built.graph.nodes;
  const auto node =
      std::ranges::find(nodes, OpTag::kIf, [](const GraphNode& n) { return n.op.tag; });
  ASSERT_NE(node, nodes.end());
  ASSERT_EQ(node->inputs.size(), 3U);  // the condition, h and x
  const auto body = decode_body(*node, 0);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->inputs.size(), 2U);
  EXPECT_EQ(body->inputs[0].name, node->inputs[1]);
  EXPECT_EQ(lowered->op_counts.at("If"), 2U);
}

/// An If on x's sum, with these nodes as branches.
std::string branching(const test::Proto& yes, const test::Proto& no) {
  const auto branch = [](std::string_view name, const test::Proto& node) {
    const test::Proto graph = test::Proto().message(1, node).message(12, test::onnx_value("b", {}));
    return test::Proto().bytes(1, name).message(6, graph).number(20, 5);
  };
  test::Proto graph;
  graph.message(1, test::onnx_node("ReduceSum", {"x"}, "sum"));
  graph.message(1, test::onnx_node("Greater", {"sum", "sum"}, "c"));
  graph.message(1, test::onnx_node("If", {"c"}, "y")
                       .message(5, branch("then_branch", yes))
                       .message(5, branch("else_branch", no)));
  graph.message(11, test::onnx_value("x", {1, -1})).message(12, test::onnx_value("y", {}));
  return test::onnx_model(graph);
}

TEST(OnnxLowering, BranchesOfAnotherRankOrTypeAreRefused) {
  const auto ok = lowered_with(
      branching(test::onnx_node("Neg", {"x"}, "b"), test::onnx_node("Abs", {"x"}, "b")), {});
  EXPECT_TRUE(ok) << ok.error().text();
  const auto rank = lowered_with(
      branching(test::onnx_node("Neg", {"x"}, "b"), test::onnx_node("Squeeze", {"x"}, "b")), {});
  ASSERT_FALSE(rank);
  const auto type = lowered_with(
      branching(test::onnx_node("Neg", {"x"}, "b"), test::onnx_node("Shape", {"x"}, "b")), {});
  ASSERT_FALSE(type);
  EXPECT_NE(type.error().text().find("If whose branches give"), std::string::npos)
      << type.error().text();
}

TEST(OnnxLowering, TheWrittenModelIsOneThatReadersTake) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / "cyb-onnx-lowering").string();
  std::filesystem::create_directories(folder);
  ImportReport report;
  const auto written = import_model(kGolden + "mlp.onnx", folder + "/m.model", {}, report);
  ASSERT_TRUE(written.has_value()) << written.error().text();
  ASSERT_TRUE(report.graph.has_value());
  ASSERT_EQ(report.graph->inputs.size(), 1U);
  EXPECT_EQ(report.graph->inputs[0].name, "x");
  EXPECT_EQ(report.graph->inputs[0].shape, "[batch, 6]");
  EXPECT_EQ(report.graph->outputs[0].shape, "[batch, 1, 5]");
  EXPECT_NE(report_text(report).find("\"y\" f32 [batch, 1, 5]"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(report_json(report)));
  const auto model = Model::open(folder + "/m.model", {.verify_weights = true});
  ASSERT_TRUE(model.has_value()) << model.error().text();
  EXPECT_EQ((*model)->name(), "mlp");
  EXPECT_EQ((*model)->model_type(), "onnx");
  EXPECT_TRUE((*model)->verify().has_value());
  const auto graph = (*model)->graph();
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->inputs[0].name, "x");
  // The matrix of the product, as [out, in]; the rest is small enough to live in the graph.
  ASSERT_EQ((*model)->tensors().size(), 1U);
  EXPECT_EQ((*model)->tensors()[0].name, "w1");
  EXPECT_EQ((*model)->tensors()[0].shape, (Shape{10, 6}));
  const auto key = source_key(kGolden + "mlp.onnx");
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->size_bytes, std::filesystem::file_size(kGolden + "mlp.onnx"));
  EXPECT_TRUE(is_import_source(kGolden + "mlp.onnx"));
  EXPECT_FALSE(is_import_source(kGolden + "mlp.json"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cyb::onnx
