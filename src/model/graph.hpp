// Graph IR: nodes in execution order with named references; binary, hex and TOML codecs; validation
// (G codes).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ops/op.hpp"

namespace cyb {

struct GraphInput {
  std::string name;
  TensorSpec spec;  // symbols are indices into Graph::symbols
};

struct GraphNode {
  std::uint32_t id = 0;
  Op op;
  std::uint8_t hint = 255;          // wished backend kind, 255: none
  std::vector<std::string> inputs;  // "" = absent optional input
  std::vector<std::string> outputs;
};

struct Graph {
  std::vector<std::string> symbols;  // "B", "S", "P", ...
  std::vector<GraphInput> inputs;
  std::vector<std::string> outputs;
  std::vector<GraphNode> nodes;
};

/// Spec of a weight by name; nullopt when the model has none of that name.
using WeightLookup = std::function<std::optional<TensorSpec>(std::string_view name)>;

/// Binary form of spec ir section 6 (CYIR version 1). The file has no form for a dimension that is
/// neither a constant, one symbol nor P + S: it becomes anonymous, which only weakens checks.
std::vector<std::byte> encode_graph(const Graph& graph);
/// Errors: G01..G04, structure only.
Result<Graph> decode_graph(std::span<const std::byte> bytes);
/// Lower-case hex, 64 bytes per line; white space is ignored when read.
std::string graph_to_hex(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> graph_from_hex(std::string_view text);
std::string write_graph_toml(const Graph& graph);
Result<Graph> parse_graph_toml(std::string_view text);

/// Specs of all tensors by name, in node order, as validation found them.
struct GraphTypes {
  std::vector<std::vector<TensorSpec>> node_outputs;  // [node][output]
  std::vector<std::uint32_t> dead_nodes;  // indices of nodes that no output and no state depends on
};

// kEmbedding, kBody (of an If or Loop): state ops are refused (G12).
enum class GraphUse : std::uint8_t { kAny, kEmbedding, kBody };

/// All rules of spec ir section 7 but G13, for the graph and every body in it; the first failure is
/// reported (G03 for all unknown tags at once). A weight that an op does not read encoded counts as
/// f32 there (rule b of section 2).
Result<GraphTypes> validate_graph(const Graph& graph, const WeightLookup& weights,
                                  GraphUse use = GraphUse::kAny);

/// G13 `graph: needs <n> bytes, <backend> allows <m>`, for whoever plans the memory of a run.
Error graph_memory_error(std::uint64_t need_bytes, std::string_view backend,
                         std::uint64_t allowed_bytes);

}  // namespace cyb
