// Runs a lowered graph node by node through the ops' references: what an import means, with nothing
// between it and the references.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "import/onnx/lowering.hpp"
#include "model/graph_bodies.hpp"
#include "ops/control/control.hpp"

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

inline Result<void> run_nodes(const Graph& graph, const Tensors& weights, Tensors& values);

/// A body on its inputs, in their order.
inline Result<std::vector<HostTensor>> run_body(const GraphNode& node, std::size_t k,
                                                std::span<const HostTensor> inputs,
                                                const Tensors& weights) {
  CYB_ASSIGN(const Graph body, decode_body(node, k));
  Tensors values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values.emplace(body.inputs[i].name, inputs[i]);
  CYB_TRY(run_nodes(body, weights, values));
  std::vector<HostTensor> out;
  for (const std::string& name : body.outputs) out.push_back(values.at(name));
  return out;
}

inline Result<HostTensor> scalar_of(DType dtype, std::int64_t value) {
  return copied(dtype, Shape{},
                std::as_bytes(std::span(&value, 1)).first(dtype == DType::kBool ? 1 : 8));
}

/// Rounds of a Loop, its stacked outputs joined by the reference of Concat.
inline Result<std::vector<HostTensor>> run_loop(const GraphNode& node,
                                                std::vector<HostTensor> inputs,
                                                const Tensors& weights) {
  const std::size_t carried = node.op.attrs.u32(1);
  const std::int64_t count = inputs[0].bytes.empty() ? INT64_MAX : (*inputs[0].ints())[0];
  bool more = inputs[1].bytes.empty() || (*inputs[1].ints())[0] != 0;
  std::vector<std::vector<HostTensor>> rows;
  for (std::int64_t round = 0; more && round < count; ++round) {
    CYB_ASSIGN(inputs[0], scalar_of(DType::kI64, round));
    CYB_ASSIGN(inputs[1], scalar_of(DType::kBool, 1));
    CYB_ASSIGN(std::vector<HostTensor> out, run_body(node, 0, inputs, weights));
    more = (*out[0].ints())[0] != 0;
    for (std::size_t k = 0; k < carried; ++k) inputs[2 + k] = out[1 + k];
    rows.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(1 + carried), out.end());
  }
  std::vector<HostTensor> out(inputs.begin() + 2,
                              inputs.begin() + static_cast<std::ptrdiff_t>(2 + carried));
  CYB_ASSIGN(const std::vector<TensorSpec> specs, declared_specs(node.op.attrs));
  for (std::size_t k = carried; k < specs.size(); ++k) {
    std::vector<std::byte> bytes;
    Shape row;
    for (const auto& each : rows) {
      row = each[k - carried].shape;
      bytes.insert(bytes.end(), each[k - carried].bytes.begin(), each[k - carried].bytes.end());
    }
    std::vector<std::int64_t> dims(row.dims().begin(), row.dims().end());
    for (std::size_t i = 1; rows.empty() && i < specs[k].rank(); ++i)
      dims.push_back(specs[k].dims[i].is_constant() ? specs[k].dims[i].constant() : 0);
    dims.insert(dims.begin(), static_cast<std::int64_t>(rows.size()));
    CYB_ASSIGN(HostTensor all,
               copied(specs[k].dtype, Shape{std::span<const std::int64_t>(dims)}, bytes));
    out.push_back(std::move(all));
  }
  return out;
}

inline Result<void> run_control(const GraphNode& node, const Tensors& weights, Tensors& values) {
  std::vector<HostTensor> inputs;
  for (const std::string& name : node.inputs) {
    const auto value = values.find(name);
    inputs.push_back(name.empty()            ? HostTensor{}
                     : value != values.end() ? value->second
                                             : weights.at(name));
  }
  std::vector<HostTensor> out;
  if (node.op.tag == OpTag::kIf) {
    const std::size_t branch = (*inputs[0].ints())[0] != 0 ? 0 : 1;
    CYB_ASSIGN(out, run_body(node, branch, std::span(inputs).subspan(1), weights));
  } else {
    CYB_ASSIGN(out, run_loop(node, std::move(inputs), weights));
  }
  for (std::size_t k = 0; k < node.outputs.size(); ++k)
    values.insert_or_assign(node.outputs[k], out[k]);
  return {};
}

inline Result<void> run_node(const GraphNode& node, const Tensors& weights, Tensors& values) {
  if (is_control(node.op.tag)) return run_control(node, weights, values);
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
