// Runs a lowered graph node by node through the ops' references: what an import means, with nothing
// between it and the references.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "import/onnx/lowering.hpp"
#include "model/graph.hpp"

namespace cyb::test {

using onnx::HostTensor;
using Tensors = std::map<std::string, HostTensor>;

inline Result<HostTensor> copied(DType dtype, const Shape& shape,
                                 std::span<const std::byte> bytes) {
  std::byte* data = nullptr;
  CYB_ASSIGN(HostTensor out, HostTensor::allocate(dtype, shape, data));
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return out;
}

/// The weights as they are stored.
inline Result<Tensors> weights_of(const onnx::BuiltGraph& built) {
  Tensors out;
  for (const onnx::BuiltWeight& weight : built.weights) {
    HostTensor tensor = weight.tensor;
    if (weight.transposed) {
      CYB_ASSIGN(const Op op, make_op(OpTag::kTranspose));
      CYB_ASSIGN(const HostTensor aligned, tensor.aligned());
      const TensorView view = aligned.view();
      CYB_ASSIGN(auto swapped, onnx::run_reference(op, std::span(&view, 1)));
      tensor = (*swapped)[0];
    }
    CYB_ASSIGN(HostTensor copy, copied(tensor.dtype, tensor.shape, tensor.bytes));
    out.emplace(weight.name, std::move(copy));
  }
  return out;
}

/// An f16 weight as an op sees it that does not take it encoded: as f32.
inline Result<HostTensor> decoded(const HostTensor& weight) {
  CYB_ASSIGN(const Op op,
             make_op(OpTag::kCast, {{"dtype", static_cast<std::int64_t>(DType::kF32)}}));
  const TensorView view = weight.view();
  CYB_ASSIGN(auto out, onnx::run_reference(op, std::span(&view, 1)));
  return (*out)[0];
}

inline Result<void> run_node(const GraphNode& node, const Tensors& weights, Tensors& values) {
  std::vector<HostTensor> held;
  std::vector<TensorView> views;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const std::string& name = node.inputs[k];
    if (name.empty()) {
      views.push_back({});
      continue;
    }
    const auto value = values.find(name);
    if (value != values.end()) {
      views.push_back(value->second.view());
      continue;
    }
    HostTensor weight = weights.at(name);
    const bool half = weight.dtype == DType::kF16 || weight.dtype == DType::kBf16;
    if (half && !takes_encoded(node.op, k)) {
      CYB_ASSIGN(weight, decoded(weight));
    }
    held.push_back(weight);
    views.push_back(weight.view());
  }
  CYB_ASSIGN(auto out, onnx::run_reference(node.op, views));
  if (!out) return fail(not_built("an op without a reference"));
  for (std::size_t k = 0; k < node.outputs.size(); ++k)
    values.insert_or_assign(node.outputs[k], (*out)[k]);
  return {};
}

inline Result<onnx::Lowered> import_case(std::span<const std::byte> bytes,
                                         const std::string& folder) {
  CYB_ASSIGN(const onnx::ModelProto model, onnx::parse_model(bytes));
  onnx::ExternalFiles files(folder);
  return onnx::lower_model(model, files);
}

/// The graph as it is after it was stored, and valid.
inline Result<Graph> stored(const onnx::BuiltGraph& built, const Tensors& weights) {
  CYB_ASSIGN(Graph graph, decode_graph(encode_graph(built.graph)));
  const WeightLookup lookup = [&](std::string_view name) -> std::optional<TensorSpec> {
    const auto at = weights.find(std::string(name));
    if (at == weights.end()) return std::nullopt;
    return TensorSpec::of(at->second.dtype, at->second.shape);
  };
  CYB_TRY(validate_graph(graph, lookup));
  return graph;
}

/// Runs all nodes; `values` has the inputs, then everything.
inline Result<void> run_nodes(const Graph& graph, const Tensors& weights, Tensors& values) {
  for (const GraphNode& node : graph.nodes) {
    auto done = run_node(node, weights, values);
    if (!done) return fail(std::move(done).error().in(std::string(op_info(node.op.tag).name)));
  }
  return {};
}

}  // namespace cyb::test
