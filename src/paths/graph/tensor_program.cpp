// Preparing a graph: names become value numbers, and nodes that read only weights and constants are
// computed by their references.
#include "paths/graph/tensor_program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/control/control.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {
namespace {

constexpr std::uint64_t kMaxFoldBytes = std::uint64_t{256} << 20;  // of one folded output

/// Weights whose elements an op other than a product cannot read.
bool needs_decoding(DType dtype) noexcept {
  const DTypeClass cls = format_info(dtype).cls;
  return cls == DTypeClass::kBlock || cls == DTypeClass::kFixed || dtype == DType::kBf16 ||
         dtype == DType::kF16 || dtype == DType::kFp8e4m3 || dtype == DType::kFp8e5m2;
}

}  // namespace

Result<HostTensor> HostTensor::allocate(DType dtype, const Shape& shape) {
  const auto size = tensor_bytes(dtype, shape);
  if (!size) {
    return fail(shape_mismatch("graph", "a tensor that memory can hold", shape.text()));
  }
  CYB_ASSIGN(Buffer bytes, Buffer::allocate(std::max<std::uint64_t>(*size, 1), "graph"));
  return HostTensor{dtype, shape, std::move(bytes)};
}

TensorView TensorProgram::stored_weight(const Value& value) const noexcept {
  const TensorEntry* entry = model_->find_tensor(value.name);
  return {entry->dtype, entry->shape, model_->tensor_bytes(*entry).data()};
}

class TensorProgram::Builder {
 public:
  Builder(const Graph& graph, const GraphTypes& types, const Model& model)
      : graph_(graph), types_(types), model_(model) {}

  Result<TensorProgram> build() {
    program_.model_ = &model_;
    program_.symbols_ = graph_.symbols;
    program_.inputs_ = graph_.inputs;
    program_.output_names_ = graph_.outputs;
    program_.values_.resize(1);
    for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i) {
      const std::uint32_t v =
          add({graph_.inputs[i].name, Source::kInput, i, graph_.inputs[i].spec, 0});
      index_[graph_.inputs[i].name] = v;
      program_.input_values_.push_back(v);
    }
    std::size_t dead = 0;
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const bool is_dead = dead < types_.dead_nodes.size() && types_.dead_nodes[dead] == i;
      if (is_dead) ++dead;
      if (!is_dead) CYB_TRY(add_node(i));
    }
    for (const std::string& name : graph_.outputs) {
      const auto found = index_.find(name);
      if (found == index_.end()) return fail(internal_error("an output without a value: " + name));
      program_.output_values_.push_back(found->second);
    }
    note_uses();
    return std::move(program_);
  }

 private:
  std::uint32_t add(Value value) {
    program_.values_.push_back(std::move(value));
    return static_cast<std::uint32_t>(program_.values_.size() - 1);
  }

  Result<std::uint32_t> value_of(const GraphNode& node, std::size_t k) {
    const std::string& name = node.inputs[k];
    if (name.empty()) return 0u;
    if (const auto it = index_.find(name); it != index_.end()) return it->second;
    const TensorEntry* entry = model_.find_tensor(name);
    if (entry == nullptr) return fail(missing_tensor(name, "the graph"));
    const bool decode = !takes_encoded(node.op, k) && needs_decoding(entry->dtype);
    const auto key = std::pair(name, decode);
    if (const auto it = weights_.find(key); it != weights_.end()) return it->second;
    const DType dtype = decode ? DType::kF32 : entry->dtype;
    const std::uint32_t v = add({name, Source::kWeight, 0, TensorSpec::of(dtype, entry->shape), 0});
    weights_[key] = v;
    return v;
  }

  bool is_constant(std::uint32_t v) const {
    const Source source = program_.values_[v].source;
    return source == Source::kAbsent || source == Source::kWeight || source == Source::kConstant;
  }

  Result<TensorView> constant_view(std::uint32_t v) {
    const Value& value = program_.values_[v];
    if (value.source == Source::kAbsent) return TensorView{};
    if (value.source == Source::kConstant) return program_.constants_[value.index].view();
    const TensorView stored = program_.stored_weight(value);
    if (stored.dtype == value.spec.dtype) return stored;
    CYB_ASSIGN(const std::vector<float> decoded, ModelTensors(model_).read_f32(value.name));
    CYB_ASSIGN(HostTensor tensor, HostTensor::allocate(DType::kF32, stored.shape));
    std::ranges::copy(decoded, tensor.bytes.as<float>());
    scratch_.push_back(std::move(tensor));
    return scratch_.back().view();
  }

  /// False: left to run time.
  Result<bool> fold(const GraphNode& node, const std::vector<std::uint32_t>& inputs) {
    const OpInfo& info = op_info(node.op.tag);
    if (info.reference == nullptr || info.state != nullptr) return false;
    if (!std::ranges::all_of(inputs, [&](std::uint32_t v) { return is_constant(v); })) return false;
    std::vector<TensorView> views;
    for (const std::uint32_t v : inputs) {
      CYB_ASSIGN(const TensorView view, constant_view(v));
      views.push_back(view);
    }
    auto specs = run_specs(node.op, views);
    if (!specs) return fail(std::move(specs).error().in("graph: node " + std::to_string(node.id)));
    std::vector<HostTensor> results;
    std::vector<MutableTensorView> outputs;
    for (const TensorSpec& spec : *specs) {
      const auto shape = spec.bind({});
      const auto size = shape ? tensor_bytes(spec.dtype, *shape) : std::nullopt;
      if (!size || *size > kMaxFoldBytes) return false;
      CYB_ASSIGN(HostTensor tensor, HostTensor::allocate(spec.dtype, *shape));
      results.push_back(std::move(tensor));
    }
    for (HostTensor& result : results) outputs.push_back(result.out());
    auto done = info.reference({.attrs = node.op.attrs, .inputs = views, .outputs = outputs});
    if (!done) return fail(std::move(done).error().in("graph: node " + std::to_string(node.id)));
    for (std::size_t k = 0; k < results.size(); ++k) {
      const auto number = static_cast<std::uint32_t>(program_.constants_.size());
      const TensorSpec spec = spec_with_value(results[k].view());
      program_.constants_.push_back(std::move(results[k]));
      index_[node.outputs[k]] = add({node.outputs[k], Source::kConstant, number, spec, 0});
    }
    scratch_.clear();
    return true;
  }

  Result<void> add_node(std::uint32_t i) {
    const GraphNode& node = graph_.nodes[i];
    const OpInfo& info = op_info(node.op.tag);
    if (node.op.tag == OpTag::kKvCache) {
      return fail(not_built("KvCache in a graph that is not a language model"));
    }
    if (info.reference == nullptr && !info.fused && !is_control(node.op.tag)) {
      return fail(Error(ErrorKind::kDispatch, "D5",
                        "Op::" + std::string(info.name) + " not implemented in graph executor"));
    }
    std::vector<std::uint32_t> inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      CYB_ASSIGN(const std::uint32_t v, value_of(node, k));
      inputs.push_back(v);
    }
    CYB_ASSIGN(const bool folded, fold(node, inputs));
    if (folded) return {};
    // The name of what it gives is what people find in their own file.
    const std::string label = fmt::format("node {} {} \"{}\"", node.id, info.name,
                                          node.outputs.empty() ? "" : node.outputs[0]);
    Node out{node.op, label, std::move(inputs), {}};
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const std::uint32_t v =
          add({node.outputs[k], Source::kNode, 0, types_.node_outputs[i][k], 0});
      index_[node.outputs[k]] = v;
      out.outputs.push_back(v);
    }
    program_.nodes_.push_back(std::move(out));
    return {};
  }

  void note_uses() {
    for (std::uint32_t i = 0; i < program_.nodes_.size(); ++i) {
      for (const std::uint32_t v : program_.nodes_[i].outputs) program_.values_[v].last_use = i;
      for (const std::uint32_t v : program_.nodes_[i].inputs) program_.values_[v].last_use = i;
    }
    for (const std::uint32_t v : program_.output_values_)
      program_.values_[v].last_use = program_.n_nodes();
  }

  const Graph& graph_;
  const GraphTypes& types_;
  const Model& model_;
  TensorProgram program_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
  std::map<std::pair<std::string, bool>, std::uint32_t> weights_;
  std::vector<HostTensor> scratch_;  // decoded weights of one fold
};

Result<TensorProgram> TensorProgram::prepare(const Graph& graph, const Model& model) {
  const ModelTensors tensors(model);
  CYB_ASSIGN(const GraphTypes types,
             validate_graph(graph, [&](std::string_view name) { return tensors.find(name); }));
  return Builder(graph, types, model).build();
}

}  // namespace cyb
