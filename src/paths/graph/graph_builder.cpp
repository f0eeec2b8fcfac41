// GraphProgram::prepare: names become value indices, constant nodes disappear, reshapes become
// views.
#include <algorithm>
#include <cstring>
#include <map>

#include "paths/graph/graph_program.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

class GraphProgram::Builder {
 public:
  Builder(const Graph& graph, const GraphTypes& types, WeightTable& weights)
      : graph_(graph), types_(types), weights_(weights) {}

  Result<GraphProgram> build() {
    program_.symbols_ = graph_.symbols;
    program_.values_.resize(1);
    for (const GraphInput& input : graph_.inputs) CYB_TRY(add_input(input));
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) CYB_TRY(add_node(i));
    CYB_TRY(finish_outputs());
    for (Value& value : program_.values_) find_past_axis(value);
    for (const Node& node : program_.nodes_) check_past_readers(node);
    return std::move(program_);
  }

 private:
  struct Known {  // a constant of the graph, in host memory until a node needs it
    TensorSpec spec;
    std::vector<float> values;
    std::uint32_t value = 0;
  };

  std::uint32_t add(Value value) {
    value.alias_of = static_cast<std::uint32_t>(program_.values_.size());
    program_.values_.push_back(std::move(value));
    return program_.values_.back().alias_of;
  }

  Result<void> add_input(const GraphInput& input) {
    const bool is_ids = input.name == "ids", is_pos = input.name == "pos";
    const bool is_length = input.name == "len" && input.spec.dtype == DType::kI32 &&
                           input.spec.dims == std::vector<Dim>{Dim(1)};
    if (!is_ids && !is_pos && !is_length)
      return fail(not_built("graph input \"" + input.name + "\" (ids, pos and len are)"));
    index_[input.name] = add({.kind = is_ids   ? Operand::Kind::kIds
                                      : is_pos ? Operand::Kind::kPositions
                                               : Operand::Kind::kLength,
                              .spec = input.spec});
    return {};
  }

  bool is_known(const std::string& name) const {
    return name.empty() || known_.contains(name) || (!index_.contains(name) && !name.empty());
  }

  // A value index for input k of a node; weights and constants are loaded on first use.
  Result<std::uint32_t> value_of(const GraphNode& node, std::size_t k) {
    const std::string& name = node.inputs[k];
    if (name.empty()) return 0u;
    if (const auto it = index_.find(name); it != index_.end()) return it->second;
    if (const auto it = known_.find(name); it != known_.end()) return constant_value(it->second);
    const bool encoded = takes_encoded(node.op, k);
    const bool gather = node.op.tag == OpTag::kTokenEmbed;
    const WeightUse use = !encoded ? WeightUse::kVector
                          : gather ? WeightUse::kGather
                                   : WeightUse::kMatmul;
    CYB_ASSIGN(const Weight* weight, weights_.get(name, use));
    const DType dtype = encoded ? weight->dtype() : DType::kF32;
    return add({.kind = Operand::Kind::kWeight,
                .spec = TensorSpec::of(dtype, weight->shape()),
                .weight = weight});
  }

  Result<std::uint32_t> constant_value(Known& known) {
    if (known.value != 0) return known.value;
    CYB_ASSIGN(const Weight* weight,
               weights_.add_constant("constant", *known.spec.bind({}), std::move(known.values)));
    known.value = add({.kind = Operand::Kind::kWeight, .spec = known.spec, .weight = weight});
    return known.value;
  }

  Result<std::vector<float>> host_values(const std::string& name) {
    if (const auto it = known_.find(name); it != known_.end()) return it->second.values;
    return ModelTensors(weights_.model()).read_f32(name);
  }

  Result<TensorSpec> host_spec(const std::string& name) {
    if (const auto it = known_.find(name); it != known_.end()) return it->second.spec;
    const TensorEntry* entry = weights_.model().find_tensor(name);
    if (entry == nullptr) return fail(missing_tensor(name, "the graph"));
    return TensorSpec::of(DType::kF32, entry->shape);
  }

  // Nodes that only read weights and constants are computed once, here.
  Result<void> fold(const GraphNode& node, std::span<const TensorSpec> outputs) {
    std::vector<std::vector<float>> held;
    std::vector<TensorView> inputs;
    for (const std::string& name : node.inputs) {
      CYB_ASSIGN(const TensorSpec spec, host_spec(name));
      CYB_ASSIGN(std::vector<float> values, host_values(name));
      held.push_back(std::move(values));
      inputs.push_back(
          {DType::kF32, *spec.bind({}), reinterpret_cast<const std::byte*>(held.back().data())});
    }
    std::vector<Known> results;
    std::vector<MutableTensorView> views;
    for (const TensorSpec& spec : outputs) {
      const Shape shape = *spec.bind({});
      results.push_back({spec, std::vector<float>(static_cast<std::size_t>(shape.count()))});
    }
    for (Known& r : results) {
      views.push_back(
          {DType::kF32, *r.spec.bind({}), reinterpret_cast<std::byte*>(r.values.data())});
    }
    CYB_TRY(op_info(node.op.tag)
                .reference(RefCall{.attrs = node.op.attrs, .inputs = inputs, .outputs = views}));
    for (std::size_t i = 0; i < results.size(); ++i)
      known_[node.outputs[i]] = std::move(results[i]);
    return {};
  }

  static bool foldable(std::span<const TensorSpec> outputs) {
    return std::all_of(outputs.begin(), outputs.end(), [](const TensorSpec& s) {
      return s.dtype == DType::kF32 && s.bind({}).has_value();
    });
  }

  Result<void> add_node(std::size_t i) {
    const GraphNode& node = graph_.nodes[i];
    const OpInfo& info = op_info(node.op.tag);
    const bool stateful = node.op.tag == OpTag::kKvCache;
    if (info.reference == nullptr && !stateful) {
      return fail(Error(ErrorKind::kDispatch, "D5",
                        "Op::" + std::string(info.name) + " not implemented in graph executor"));
    }
    const auto& outputs = types_.node_outputs[i];
    const bool all_known =
        std::all_of(node.inputs.begin(), node.inputs.end(),
                    [&](const std::string& name) { return !name.empty() && is_known(name); });
    if (all_known && !stateful && foldable(outputs)) return fold(node, outputs);

    Node out{
        .op = node.op, .label = "node " + std::to_string(node.id), .inputs = {}, .outputs = {}};
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      CYB_ASSIGN(const std::uint32_t value, value_of(node, k));
      out.inputs.push_back(value);
    }
    const auto at = static_cast<std::uint32_t>(program_.nodes_.size());
    for (const std::uint32_t v : out.inputs) touch(v, at);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const std::uint32_t value =
          add({.kind = Operand::Kind::kArena, .spec = outputs[k], .last_use = at});
      index_[node.outputs[k]] = value;
      out.outputs.push_back(value);
    }
    if (node.op.tag == OpTag::kReshape &&
        program_.values_[out.inputs[0]].kind == Operand::Kind::kArena) {
      out.is_view = true;
      program_.values_[out.outputs[0]].alias_of = program_.values_[out.inputs[0]].alias_of;
    }
    if (stateful) CYB_TRY(note_kv_layer(node, outputs[0]));
    program_.nodes_.push_back(std::move(out));
    return {};
  }

  /// A dimension of the form P + something without P counts the past.
  void find_past_axis(Value& value) {
    for (std::size_t axis = 0; axis < value.spec.dims.size(); ++axis) {
      for (const auto& [symbol, factor] : value.spec.dims[axis].terms()) {
        if (symbol >= graph_.symbols.size() || graph_.symbols[symbol] != "P") continue;
        if (factor != 1 || value.past_axis >= 0) program_.takes_any_past_ = false;
        value.past_axis = static_cast<std::int8_t>(axis);
      }
    }
  }

  /// Attention alone looks at the shape of the run; other steps may be built for the stored one.
  void check_past_readers(const Node& node) {
    if (node.op.tag == OpTag::kSdpa || node.op.tag == OpTag::kFlashAttention) return;
    for (const std::uint32_t v : node.inputs) {
      if (program_.values_[v].past_axis >= 0) program_.takes_any_past_ = false;
    }
  }

  void touch(std::uint32_t value, std::uint32_t node) {
    Value& root = program_.values_[program_.values_[value].alias_of];
    root.last_use = std::max(root.last_use, node);
  }

  Result<void> note_kv_layer(const GraphNode& node, const TensorSpec& keys) {
    const std::uint32_t layer = node.op.attrs.u32(0);
    if (keys.rank() != 4 || !keys.dims[1].is_constant() || !keys.dims[3].is_constant() ||
        layer > 65535) {
      return fail(not_built("a KvCache whose heads are not constant"));
    }
    if (program_.kv_layers_.size() <= layer) program_.kv_layers_.resize(layer + 1);
    program_.kv_layers_[layer] = {static_cast<std::uint32_t>(keys.dims[1].constant()),
                                  static_cast<std::uint32_t>(keys.dims[3].constant())};
    return {};
  }

  Result<void> finish_outputs() {
    const auto it = graph_.outputs.empty() ? index_.end() : index_.find(graph_.outputs[0]);
    if (it == index_.end()) return fail(not_built("a graph whose first output is a constant"));
    program_.output_ = it->second;
    touch(it->second, static_cast<std::uint32_t>(program_.nodes_.size()));
    const TensorSpec& spec = program_.values_[it->second].spec;
    if (spec.rank() != 3 || !spec.dims[2].is_constant() || spec.dtype != DType::kF32) {
      return fail(not_built("a graph whose first output is not f32 logits [B, S, V]"));
    }
    program_.vocab_size_ = static_cast<std::uint32_t>(spec.dims[2].constant());
    return {};
  }

  const Graph& graph_;
  const GraphTypes& types_;
  WeightTable& weights_;
  GraphProgram program_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
  std::map<std::string, Known, std::less<>> known_;
};

Result<GraphProgram> GraphProgram::prepare(const Graph& graph, WeightTable& weights) {
  CYB_ASSIGN(const GraphTypes types,
             validate_graph(graph, [&](std::string_view name) { return weights.find(name); }));
  return Builder(graph, types, weights).build();
}

}  // namespace cyb
