// Graphs: both stored forms against an encoder of its own (golden/make/model_graphs.py), one file
// per G code, hostile bytes, dtype rules and dead nodes.
#include "model/graph.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "base/hash.hpp"

namespace cyb {
namespace {

const std::string kFolder = std::string(CYB_TESTS_DIR) + "/golden/model/graph/";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<TensorSpec> weight(std::string_view name) {
  if (name == "w") return TensorSpec::of(DType::kF32, {8, 4});
  if (name == "q") return TensorSpec::of(DType::kQ8, {8, 32});
  if (name == "h") return TensorSpec::of(DType::kF16, {4});
  if (name == "model.embed.weight") return TensorSpec::of(DType::kF32, {10, 4});
  if (name == "model.norm.weight") return TensorSpec::of(DType::kF32, {4});
  return std::nullopt;
}

Result<Graph> load_hex(const std::string& text) {
  CYB_ASSIGN(const std::vector<std::byte> bytes, graph_from_hex(text));
  return decode_graph(bytes);
}

Result<GraphTypes> check(const std::string& hex_text) {
  CYB_ASSIGN(const Graph graph, load_hex(hex_text));
  return validate_graph(graph, weight);
}

TEST(GraphForms, BinaryAndTomlSayTheSame) {
  const std::string hex_text = read_file(kFolder + "sample.hex");
  const std::string toml_text = read_file(kFolder + "sample.toml");
  const auto from_hex = load_hex(hex_text);
  ASSERT_TRUE(from_hex.has_value()) << from_hex.error().text();
  const auto from_toml = parse_graph_toml(toml_text);
  ASSERT_TRUE(from_toml.has_value()) << from_toml.error().text();
  EXPECT_EQ(write_graph_toml(*from_hex), toml_text);
  EXPECT_EQ(write_graph_toml(*from_toml), toml_text);
  EXPECT_EQ(graph_to_hex(encode_graph(*from_hex)), hex_text);
  EXPECT_EQ(graph_to_hex(encode_graph(*from_toml)), hex_text);
}

TEST(GraphForms, SymbolsInMemoryAreBSPThenOthers) {
  const auto graph = load_hex(read_file(kFolder + "sample.hex"));
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->symbols, (std::vector<std::string>{"B", "S", "P", "img"}));
  EXPECT_EQ(graph->inputs[2].spec.dims[3], Dim::symbol(kSymbolS) + Dim::symbol(kSymbolP));
  EXPECT_EQ(graph->inputs[3].spec.dims[0], Dim::symbol(3));
  EXPECT_TRUE(graph->inputs[3].spec.dims[1].is_anonymous());
  const auto other = parse_graph_toml(
      "version = 1\nsymbols = [\"x\", \"S\", \"B\"]\noutputs = []\n[[inputs]]\nname = \"a\"\ndtype "
      "= \"f32\"\n"
      "shape = [\"B\", \"x\", \"S\"]\n");
  ASSERT_TRUE(other.has_value()) << other.error().text();
  EXPECT_EQ(other->symbols, (std::vector<std::string>{"B", "S", "P", "x"}));
  EXPECT_EQ(other->inputs[0].spec.dims[0], Dim::symbol(kSymbolB));
  EXPECT_EQ(other->inputs[0].spec.dims[1], Dim::symbol(3));
}

TEST(GraphForms, SampleIsValid) {
  const auto types = check(read_file(kFolder + "sample.hex"));
  ASSERT_TRUE(types.has_value()) << types.error().text();
  const std::vector<std::string> names = {"B", "S", "P"};
  EXPECT_EQ(types->node_outputs[0][0].text(names), "f32 [B, S, 4]");
  EXPECT_EQ(types->node_outputs[6][1].text(names), "f32 [B, 2, S+P, 4]");
  EXPECT_EQ(types->node_outputs[7][0].text(names), "f32 [B, 2, S, 4]");
  EXPECT_TRUE(types->dead_nodes.empty());
}

TEST(GraphForms, HexIgnoresWhiteSpaceAndCase) {
  std::string text = read_file(kFolder + "sample.hex");
  for (std::size_t at = 5; at < text.size(); at += 11) text.insert(at, " \t\r\n");
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  EXPECT_TRUE(load_hex(text).has_value());
  EXPECT_EQ(graph_from_hex("0g").error().text(),
            "graph: not a CYIR v1 graph: no hex digit at byte 1");
  EXPECT_EQ(graph_from_hex("abc").error().text(), "graph: truncated at byte 1");
}

nlohmann::json expectations() {
  return nlohmann::json::parse(read_file(kFolder + "bad/expected.json"));
}

TEST(GraphRules, EveryBadFileIsRefusedWithItsCodeAndText) {
  const nlohmann::json expected = expectations();
  std::set<std::string> codes;
  for (const auto& [name, want] : expected.items()) {
    const auto result = check(read_file(kFolder + "bad/" + name + ".hex"));
    const auto code = want.at("code").get<std::string>();
    const auto text = want.at("text").get<std::string>();
    codes.insert(code);
    ASSERT_FALSE(result.has_value()) << name << " was accepted";
    EXPECT_EQ(result.error().code(), code) << name << ": " << result.error().text();
    EXPECT_EQ(result.error().kind(), ErrorKind::kGraph) << name;
    if (text.ends_with(' ')) {
      EXPECT_TRUE(result.error().text().starts_with(text)) << result.error().text();
    } else {
      EXPECT_EQ(result.error().text(), text) << name;
    }
  }
  for (int number = 1; number <= 12; ++number) {
    EXPECT_TRUE(codes.contains((number < 10 ? "G0" : "G") + std::to_string(number))) << number;
  }
  EXPECT_EQ(graph_memory_error(10, "cpu", 5).text(), "graph: needs 10 bytes, cpu allows 5");
  EXPECT_EQ(graph_memory_error(10, "cpu", 5).code(), "G13");
}

TEST(GraphRules, StateInAnEmbeddingGraphIsG12) {
  const auto graph = load_hex(read_file(kFolder + "sample.hex"));
  ASSERT_TRUE(graph.has_value());
  const auto result = validate_graph(*graph, weight, GraphUse::kEmbedding);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().text(),
            "graph: node 10 (KvCache): a state op in a graph used for embedding");
}

Graph toml_graph(const std::string& nodes, const std::string& outputs) {
  const std::string head = "version = 1\nsymbols = [\"B\"]\noutputs = [" + outputs +
                           "]\n[[inputs]]\nname = \"x\"\ndtype = \"f32\"\nshape = [\"B\", 32]\n"
                           "[[inputs]]\nname = \"v\"\ndtype = \"f32\"\nshape = [\"B\", 4]\n";
  auto graph = parse_graph_toml(head + nodes);
  EXPECT_TRUE(graph.has_value()) << graph.error().text();
  return graph ? *std::move(graph) : Graph{};
}

TEST(GraphRules, BlockWeightsOnlyWhereTheyAreReadEncoded) {
  const Graph matmul = toml_graph(
      "[[nodes]]\nid = 0\nop = \"Matmul\"\nin = [\"x\", \"q\"]\nout = [\"y\"]\n", "\"y\"");
  const auto types = validate_graph(matmul, weight);
  ASSERT_TRUE(types.has_value()) << types.error().text();
  EXPECT_EQ(types->node_outputs[0][0].text(), "f32 [s0, 8]");
  // Rule (b): other ops get it decoded, and so f16 gains beside f32 values.
  const Graph add = toml_graph(
      "[[nodes]]\nid = 0\nop = \"Concat\"\nin = [\"q\", \"q\"]\nout = [\"y\"]\nattrs = {axis = 0}\n"
      "[[nodes]]\nid = 1\nop = \"Mul\"\nin = [\"v\", \"h\"]\nout = [\"z\"]\n",
      "\"y\", \"z\"");
  const auto decoded = validate_graph(add, weight);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().text();
  EXPECT_EQ(decoded->node_outputs[0][0].text(), "f32 [16, 32]");
  EXPECT_EQ(decoded->node_outputs[1][0].text(), "f32 [s0, 4]");
}

TEST(GraphRules, DeadNodesAreFoundThroughTheirReaders) {
  const Graph graph = toml_graph(
      "[[nodes]]\nid = 3\nop = \"Add\"\nin = [\"x\", \"x\"]\nout = [\"a\"]\n"
      "[[nodes]]\nid = 4\nop = \"Silu\"\nin = [\"a\"]\nout = [\"b\"]\n"
      "[[nodes]]\nid = 5\nop = \"Silu\"\nin = [\"x\"]\nout = [\"y\"]\n",
      "\"y\"");
  const auto types = validate_graph(graph, weight);
  ASSERT_TRUE(types.has_value()) << types.error().text();
  EXPECT_EQ(types->dead_nodes, (std::vector<std::uint32_t>{0, 1}));
}

TEST(GraphToml, SaysWhatIsWrong) {
  const auto text_of = [](std::string text) {
    const auto graph = parse_graph_toml(text);
    return graph ? std::string("accepted") : graph.error().text();
  };
  EXPECT_EQ(text_of(""), "graph: not a CYIR v1 graph");
  EXPECT_EQ(text_of("version = 1\nnodes = 3\n"), "graph: nodes: want an array of tables");
  EXPECT_EQ(text_of("version = 1\n[[nodes]]\nid = 1\nop = \"Sum\"\n[[nodes]]\nid = 2\nop = "
                    "\"BlockSoftcap\"\n"),
            "graph: node 1: unknown op tag Sum; node 2: unknown op tag BlockSoftcap");
  EXPECT_EQ(text_of("version = 1\n[[nodes]]\nid = 1\nop = \"RmsNorm\"\nattrs = {eps = \"x\"}\n"),
            "graph: node 1 (RmsNorm): bad payload: eps");
  EXPECT_EQ(text_of("version = 1\n[[nodes]]\nid = 1\nop = \"Gelu\"\nattrs = {mode = 256}\n"),
            "graph: node 1 (Gelu): bad payload: mode");
  EXPECT_EQ(text_of("version = 1\n[[nodes]]\nid = 1\nop = \"Gelu\"\nattrs = {mode = 1, x = 1}\n"),
            "graph: node 1 (Gelu): bad payload: length");
  EXPECT_EQ(text_of("version = 1\n[[nodes]]\nop = \"Add\"\n"),
            "graph: nodes[0]: want an integer id");
}

TEST(GraphHostile, EveryCutAndEveryFlippedBitIsRefused) {
  const auto bytes = graph_from_hex(read_file(kFolder + "sample.hex"));
  ASSERT_TRUE(bytes.has_value());
  for (std::size_t size = 0; size < bytes->size(); ++size) {
    EXPECT_FALSE(decode_graph(std::span(*bytes).first(size)).has_value()) << size;
  }
  std::vector<std::byte> changed = *bytes;
  for (std::size_t bit = 0; bit < 8 * changed.size(); ++bit) {
    changed[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    EXPECT_FALSE(decode_graph(changed).has_value()) << bit;
    changed[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  }
}

TEST(GraphHostile, ForgedChecksumsNeverCrash) {
  const auto bytes = graph_from_hex(read_file(kFolder + "sample.hex"));
  ASSERT_TRUE(bytes.has_value());
  const std::size_t body = bytes->size() - 4;
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < body; ++at) {
    for (const unsigned value : {0u, 1u, 0x7Fu, 0x80u, 0xFFu}) {
      std::vector<std::byte> changed = *bytes;
      changed[at] = static_cast<std::byte>(value);
      const std::uint32_t crc = crc32c(std::span(changed).first(body));
      std::memcpy(changed.data() + body, &crc, 4);
      const auto graph = decode_graph(changed);
      if (!graph) continue;
      ++accepted;
      const auto types = validate_graph(*graph, weight);
      if (types) {
        // What is valid survives both forms.
        const auto again = parse_graph_toml(write_graph_toml(*graph));
        ASSERT_TRUE(again.has_value()) << again.error().text();
        EXPECT_EQ(encode_graph(*again), encode_graph(*graph)) << at;
      }
    }
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace cyb
