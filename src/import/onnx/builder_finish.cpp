// From values to names: dead nodes are left out, constants become weights or Constant nodes, and
// every name that the graph may keep is kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/limits.hpp"
#include "import/onnx/builder.hpp"
#include "model/graph_names.hpp"

namespace cyb::onnx {
namespace {

// A weight takes a page of the file: smaller constants live in the graph. So do those that a
// weight may not be (an infinity), up to the larger bound.
constexpr std::size_t kMinWeightBytes = 1024;
constexpr std::size_t kMaxConstantBytes = std::size_t{16} << 20;

template <class T>
bool all_finite_as(std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

bool halves_finite(std::span<const std::byte> bytes, std::uint16_t exponent) {
  for (std::size_t at = 0; at + 2 <= bytes.size(); at += 2) {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes.data() + at, 2);
    if ((value & exponent) == exponent) return false;
  }
  return true;
}

bool all_finite(const HostTensor& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return all_finite_as<float>(tensor.bytes);
    case DType::kF64:
      return all_finite_as<double>(tensor.bytes);
    case DType::kF16:
      return halves_finite(tensor.bytes, 0x7C00);
    case DType::kBf16:
      return halves_finite(tensor.bytes, 0x7F80);
    default:
      return true;
  }
}

bool is_reserved(std::string_view name) {
  return name.starts_with("model.") || name.starts_with("lm_head.") || name.starts_with("cyb.");
}

std::string content_key(const HostTensor& tensor) {
  std::string key = fmt::format("{}{}:", dtype_name(tensor.dtype), tensor.shape.text());
  key.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return key;
}

}  // namespace

/// One graph under construction: the main one, or a body.
struct Builder::Part {
  Graph graph;
  std::map<std::string, std::string> constants;  // content -> name
  std::map<Val, std::string> names;              // of constants as operands
  std::map<Val, std::string> cast;               // f16 weights, decoded and rounded back

  void node(Op op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    GraphNode node;
    node.id = static_cast<std::uint32_t>(graph.nodes.size());
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    graph.nodes.push_back(std::move(node));
  }
};

struct Builder::Finishing {
  BuiltGraph out;
  std::vector<Part> parts;              // by region
  std::vector<std::vector<Val>> reads;  // by region: values of the regions around it
  std::map<Val, std::string> stored;    // constants that became weights
  std::set<Val> named;                  // outputs of the graph
};

Shape BuiltWeight::shape() const {
  Shape shape = tensor.shape;
  if (transposed) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return shape;
}

std::string Builder::give_name(std::string_view wished, std::string_view fallback, bool weight) {
  const bool fine = is_graph_name(wished) && (weight || !is_reserved(wished));
  std::string name(fine ? wished : fallback);
  for (std::size_t i = 1; taken_.contains(name); ++i) name = fmt::format("{}_{}", fallback, i);
  taken_.insert(name);
  return name;
}

std::vector<bool> Builder::live_nodes(std::span<const Val> outputs) const {
  std::vector<bool> live(nodes_.size(), false);
  const auto mark = [&](Val value) {
    if (values_[value].origin == Origin::kNode) live[values_[value].node] = true;
  };
  for (const Val value : outputs) mark(value);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const Val input : nodes_[i].inputs) mark(input);
    for (const std::uint32_t body : nodes_[i].bodies) {
      for (const Val value : regions_[body].outputs) mark(value);
    }
  }
  return live;
}

Result<std::vector<Val>> Builder::name_outputs(std::span<const std::pair<std::string, Val>> outputs,
                                               BuiltGraph& out) {
  std::vector<Val> values;
  std::set<Val> seen;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto [name, value] = outputs[i];
    const bool copy = values_[value].origin != Origin::kNode || seen.contains(value);
    if (copy) {
      // An output that is an input, a constant or another output: a copy under its own name.
      CYB_ASSIGN(Op op, make_op(OpTag::kIdentity));
      value = copied(value, std::move(op));
    }
    std::string given = give_name(name, fmt::format("output_{}", i), false);
    if (given != name) out.renamed.emplace_back(name, given);
    values_[value].name = given;
    out.graph.outputs.push_back(std::move(given));
    values.push_back(value);
    seen.insert(value);
  }
  return values;
}

std::string Builder::constant_node(const HostTensor& tensor, Part& part) {
  const bool shared = tensor.bytes.size() < kMinWeightBytes;
  std::string key = shared ? content_key(tensor) : std::string();
  if (shared) {
    const auto at = part.constants.find(key);
    if (at != part.constants.end()) return at->second;
  }
  std::string name = give_name("", fmt::format("constant_{}", part.graph.nodes.size()), false);
  Op op{OpTag::kConstant, {}};
  op.attrs.values = {
      static_cast<std::int64_t>(tensor.dtype),
      std::vector<std::int64_t>(tensor.shape.dims().begin(), tensor.shape.dims().end()),
      std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end())};
  part.node(std::move(op), {}, {name});
  if (shared) part.constants.emplace(std::move(key), name);
  return name;
}

Result<std::string> Builder::weight(Val value, Finishing& f, Part& part) {
  const Value& v = values_[value];
  const HostTensor& tensor = *v.constant;
  const std::size_t size = tensor.bytes.size();
  const bool small = size < kMinWeightBytes && !v.transposed;
  if (small || (size <= kMaxConstantBytes && !v.transposed && !all_finite(tensor)))
    return constant_node(tensor, part);
  BuiltWeight weight{"", tensor, v.transposed};
  const Shape full = weight.shape();
  const bool flat = full.rank() > kMaxRank;  // stored flat, shaped by a node
  auto at = f.stored.find(value);
  if (at == f.stored.end()) {
    weight.name = give_name(v.name, fmt::format("weight_{}", value), true);
    if (flat) weight.tensor.shape = Shape{full.count()};
    at = f.stored.emplace(value, weight.name).first;
    f.out.weights.push_back(std::move(weight));
  }
  if (!flat) return at->second;
  CYB_ASSIGN(
      Op op,
      make_op(OpTag::kReshape,
              {{"shape", std::vector<std::int64_t>(full.dims().begin(), full.dims().end())}}));
  std::string shaped = give_name("", fmt::format("shaped_{}", value), false);
  part.node(std::move(op), {at->second}, {shaped});
  return shaped;
}

Result<std::string> Builder::operand(Val value, const Op& op, std::size_t k, Finishing& f,
                                     Part& part) {
  if (value == 0) return std::string();
  const Value& v = values_[value];
  if (v.origin != Origin::kConstant) return v.name;
  auto at = part.names.find(value);
  if (at == part.names.end()) {
    CYB_ASSIGN(std::string name, weight(value, f, part));
    at = part.names.emplace(value, std::move(name)).first;
  }
  // An f16 weight reads as f32 where the op does not take it encoded: rounding it back is exact.
  const bool decoded = f.stored.contains(value) && v.constant->dtype == DType::kF16 &&
                       op.tag != OpTag::kCast && !takes_encoded(op, k);
  if (!decoded) return at->second;
  const auto done = part.cast.find(value);
  if (done != part.cast.end()) return done->second;
  std::string name = give_name("", fmt::format("half_{}", value), false);
  CYB_ASSIGN(Op cast, make_op(OpTag::kCast, {{"dtype", static_cast<std::int64_t>(DType::kF16)}}));
  part.node(std::move(cast), {at->second}, {name});
  part.cast.emplace(value, name);
  return name;
}

Result<void> Builder::finish_node(std::size_t i, Finishing& f) {
  std::vector<Val> values = nodes_[i].inputs;
  if (!nodes_[i].bodies.empty()) CYB_TRY(finish_bodies(i, values, f));
  Part& part = f.parts[nodes_[i].region];
  std::vector<std::string> inputs, names;
  for (std::size_t k = 0; k < values.size(); ++k) {
    CYB_ASSIGN(std::string name, operand(values[k], nodes_[i].op, k, f, part));
    inputs.push_back(std::move(name));
  }
  for (const Val output : nodes_[i].outputs) {
    Value& value = values_[output];
    if (!f.named.contains(output))
      value.name = give_name(value.name, fmt::format("t{}", output), false);
    names.push_back(value.name);
  }
  part.node(std::move(nodes_[i].op), std::move(inputs), std::move(names));
  return {};
}

Result<BuiltGraph> Builder::finish(std::span<const std::pair<std::string, Val>> outputs) {
  Finishing f;
  taken_.insert("");
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    std::string& name = graph_.inputs[i].name;
    std::string given = give_name(name, fmt::format("input_{}", i), false);
    if (given != name) f.out.renamed.emplace_back(name, given);
    values_[input_values_[i]].name = given;
    name = std::move(given);
  }
  CYB_ASSIGN(const std::vector<Val> values, name_outputs(outputs, f.out));
  const std::vector<bool> live = live_nodes(values);
  f.reads = captures(live);
  f.parts.resize(regions_.size());
  f.named.insert(values.begin(), values.end());
  for (const Region& region : regions_) {
    for (const Val input : region.inputs)
      values_[input].name = give_name("", fmt::format("t{}", input), false);
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (live[i]) CYB_TRY(finish_node(i, f));
  }
  f.parts[0].graph.symbols = graph_.symbols;
  f.parts[0].graph.inputs = graph_.inputs;
  f.parts[0].graph.outputs = std::move(f.out.graph.outputs);
  f.out.graph = std::move(f.parts[0].graph);
  return std::move(f.out);
}

Result<void> Builder::finish_bodies(std::size_t i, std::vector<Val>& inputs, Finishing& f) {
  Node& node = nodes_[i];
  std::vector<Val> read;  // by any body: the op gives all of them to each
  for (const std::uint32_t body : node.bodies) {
    for (const Val value : f.reads[body]) {
      if (std::ranges::find(read, value) == read.end()) read.push_back(value);
    }
  }
  inputs.insert(inputs.end(), read.begin(), read.end());
  for (std::size_t k = 0; k < node.bodies.size(); ++k) {
    const Region& region = regions_[node.bodies[k]];
    Graph& graph = f.parts[node.bodies[k]].graph;
    graph.symbols = graph_.symbols;
    const auto add_input = [&](Val value) {
      TensorSpec spec = values_[value].spec;
      spec.value.reset();
      graph.inputs.push_back({values_[value].name, std::move(spec)});
    };
    for (const Val value : region.inputs) add_input(value);
    for (const Val value : read) add_input(value);
    for (const Val value : region.outputs) graph.outputs.push_back(values_[value].name);
    node.op.attrs.values[k] = encode_graph(graph);
  }
  return {};
}

}  // namespace cyb::onnx
