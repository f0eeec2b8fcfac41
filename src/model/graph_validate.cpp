// Validation of a graph: every rule that can be decided with symbols unbound. One pass in node
// order, which is also the order of execution, so a cycle shows as a use before definition (G08).
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/limits.hpp"
#include "model/format_error.hpp"
#include "model/graph_bodies.hpp"
#include "model/graph_names.hpp"
#include "ops/control/control.hpp"

namespace cyb {
namespace {

// State ops of the op list; a number, since not every one of them has a registry row.
bool is_state_op(OpTag tag) noexcept {
  const auto number = static_cast<std::uint16_t>(tag);
  return number == 23 || number == 311 || number == 312;
}

bool is_reserved_name(std::string_view name) noexcept {
  return name.starts_with("model.") || name.starts_with("lm_head.") || name.starts_with("cyb.");
}

/// Formats in which only weights are stored.
bool is_weight_only(DType dtype) noexcept {
  const DTypeClass cls = format_info(dtype).cls;
  return cls == DTypeClass::kBlock || cls == DTypeClass::kFixed || dtype == DType::kBf16 ||
         dtype == DType::kFp8e4m3 || dtype == DType::kFp8e5m2;
}

/// A weight as an op sees it that does not read it encoded.
TensorSpec decoded(TensorSpec spec) {
  if (is_weight_only(spec.dtype) || spec.dtype == DType::kF16) spec.dtype = DType::kF32;
  return spec;
}

class Validator {
 public:
  Validator(const Graph& graph, const WeightLookup& weights, GraphUse use,
            std::vector<BodyCheck>& bodies)
      : graph_(graph), weights_(weights), use_(use), bodies_(bodies) {}

  Result<GraphTypes> run() {
    CYB_TRY(check_ops());
    CYB_TRY(check_inputs());
    types_.node_outputs.reserve(graph_.nodes.size());
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) CYB_TRY(check_node(i));
    for (const std::string& name : graph_.outputs) {
      if (!values_.contains(name)) {
        return fail(
            graph_error("G11", fmt::format("output \"{}\" is never produced", printable(name))));
      }
    }
    find_dead_nodes();
    return std::move(types_);
  }

 private:
  static constexpr std::uint32_t kInputNode = UINT32_MAX;
  struct Value {
    std::uint32_t node;    // index, kInputNode for an input of the graph
    std::uint32_t output;  // index into the node's outputs, or into the graph's inputs
  };

  Error error_at(const GraphNode& node, std::string_view code, std::string_view what) const {
    return node_error(code, node.id, op_info(node.op.tag).name, what);
  }

  Result<void> check_ops() const {
    UnknownOps unknown;
    for (const GraphNode& node : graph_.nodes) {
      const auto tag = static_cast<std::uint16_t>(node.op.tag);
      if (find_stored_op(tag) == nullptr) unknown.add(node.id, std::to_string(tag));
    }
    if (!unknown.empty()) return fail(unknown.error());
    return {};
  }

  Result<void> check_inputs() {
    for (std::uint32_t i = 0; i < graph_.inputs.size(); ++i) {
      const GraphInput& input = graph_.inputs[i];
      const std::string shown = printable(input.name);
      if (!is_graph_name(input.name))
        return fail(graph_error("G08", fmt::format("bad input name \"{}\"", shown)));
      if (is_reserved_name(input.name) || weights_(input.name)) {
        return fail(graph_error("G07", fmt::format("\"{}\" is an input and a weight", shown)));
      }
      if (!values_.emplace(input.name, Value{kInputNode, i}).second) {
        return fail(graph_error("G07", fmt::format("\"{}\" is an input twice", shown)));
      }
      if (is_weight_only(input.spec.dtype)) {
        return fail(graph_error("G09", fmt::format("input \"{}\": dtype {} is for weights only",
                                                   shown, dtype_name(input.spec.dtype))));
      }
      if (input.spec.rank() > kMaxGraphRank) {
        return fail(
            graph_error("G10", fmt::format("input \"{}\": rank {} > 8", shown, input.spec.rank())));
      }
    }
    return {};
  }

  Result<void> check_node(std::uint32_t index) {
    const GraphNode& node = graph_.nodes[index];
    if (!ids_.insert(node.id).second) {
      return fail(graph_error("G06", fmt::format("duplicate node id {}", node.id)));
    }
    std::vector<TensorSpec> inputs;
    inputs.reserve(node.inputs.size());
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      CYB_ASSIGN(TensorSpec spec, input_spec(node, k));
      inputs.push_back(std::move(spec));
    }
    auto outputs = infer(node.op, inputs);
    if (!outputs) return fail(rule_error(node, std::move(outputs).error()));
    if (outputs->size() != node.outputs.size()) {
      return fail(error_at(
          node, "G05", fmt::format("{} outputs, needs {}", node.outputs.size(), outputs->size())));
    }
    if (is_control(node.op.tag)) bodies_.push_back({&node, inputs, *outputs});
    types_.node_outputs.push_back(*std::move(outputs));
    CYB_TRY(add_outputs(index));
    return check_state(node);
  }

  Result<TensorSpec> input_spec(const GraphNode& node, std::size_t k) const {
    const std::string& name = node.inputs[k];
    if (name.empty()) return TensorSpec::none();
    const auto found = values_.find(name);
    if (found != values_.end()) {
      const Value& value = found->second;
      return value.node == kInputNode ? graph_.inputs[value.output].spec
                                      : types_.node_outputs[value.node][value.output];
    }
    if (is_graph_name(name)) {
      if (auto weight = weights_(name)) {
        // takes_encoded reads attributes: they must be those of the schema.
        if (auto kinds = check_attr_kinds(node.op); !kinds)
          return fail(rule_error(node, std::move(kinds).error()));
        return takes_encoded(node.op, k) ? *std::move(weight) : decoded(*std::move(weight));
      }
    }
    return fail(graph_error(
        "G08", fmt::format("node {}: \"{}\" is not an input, an earlier output or a weight",
                           node.id, printable(name))));
  }

  /// Errors of an op's rules carry the code and the tail of the text.
  Error rule_error(const GraphNode& node, Error error) const {
    if (!error.code().starts_with("G"))
      return std::move(error).in(fmt::format("graph: node {}", node.id));
    return error_at(node, error.code(), error.message());
  }

  Result<void> add_outputs(std::uint32_t index) {
    const GraphNode& node = graph_.nodes[index];
    for (std::uint32_t k = 0; k < node.outputs.size(); ++k) {
      const std::string& name = node.outputs[k];
      if (!is_graph_name(name)) {
        return fail(
            error_at(node, "G08", fmt::format("bad name \"{}\" of output {}", printable(name), k)));
      }
      if (is_reserved_name(name) || weights_(name)) {
        return fail(graph_error("G07", fmt::format("\"{}\" is produced by node {} and is a weight",
                                                   printable(name), node.id)));
      }
      const auto [earlier, added] = values_.emplace(name, Value{index, k});
      if (added) continue;
      const std::uint32_t other = earlier->second.node;
      if (other == kInputNode) {
        return fail(graph_error("G07", fmt::format("\"{}\" is produced by node {} and is an input",
                                                   printable(name), node.id)));
      }
      return fail(
          graph_error("G07", fmt::format("\"{}\" is produced by nodes {} and {}", printable(name),
                                         graph_.nodes[other].id, node.id)));
    }
    return {};
  }

  Result<void> check_state(const GraphNode& node) {
    if (!is_state_op(node.op.tag)) return {};
    if (use_ == GraphUse::kEmbedding) {
      return fail(error_at(node, "G12", "a state op in a graph used for embedding"));
    }
    if (use_ == GraphUse::kBody) {
      return fail(error_at(node, "G12", "a state op in the body of another"));
    }
    const auto& schema = op_info(node.op.tag).attrs;
    const auto field = std::ranges::find(schema, "layer", &AttrSpec::name);
    if (field == schema.end()) return {};
    const std::int64_t layer = node.op.attrs.i(static_cast<std::size_t>(field - schema.begin()));
    if (!layers_.emplace(node.op.tag, layer).second) {
      return fail(
          graph_error("G12", fmt::format("node {}: duplicate state layer {}", node.id, layer)));
    }
    return {};
  }

  void find_dead_nodes() {
    std::vector<bool> live(graph_.nodes.size(), false);
    const auto mark = [&](const std::string& name) {
      const auto found = values_.find(name);
      if (found != values_.end() && found->second.node != kInputNode)
        live[found->second.node] = true;
    };
    for (const std::string& name : graph_.outputs) mark(name);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!live[i] && !is_state_op(graph_.nodes[i].op.tag)) continue;
      live[i] = true;
      for (const std::string& name : graph_.nodes[i].inputs) mark(name);
    }
    for (std::uint32_t i = 0; i < live.size(); ++i) {
      if (!live[i]) types_.dead_nodes.push_back(i);
    }
  }

  const Graph& graph_;
  const WeightLookup& weights_;
  GraphUse use_;
  std::vector<BodyCheck>& bodies_;
  GraphTypes types_;
  std::unordered_map<std::string_view, Value> values_;
  std::unordered_set<std::uint32_t> ids_;
  std::set<std::pair<OpTag, std::int64_t>> layers_;
};

}  // namespace

Result<GraphTypes> validate_one(const Graph& graph, const WeightLookup& weights, GraphUse use,
                                std::vector<BodyCheck>& bodies) {
  return Validator(graph, weights, use, bodies).run();
}

Result<GraphTypes> validate_graph(const Graph& graph, const WeightLookup& weights, GraphUse use) {
  std::vector<BodyCheck> bodies;
  CYB_ASSIGN(GraphTypes types, validate_one(graph, weights, use, bodies));
  CYB_TRY(check_bodies(std::move(bodies), weights));
  return types;
}

Error graph_memory_error(std::uint64_t need_bytes, std::string_view backend,
                         std::uint64_t allowed_bytes) {
  return graph_error(
      "G13", fmt::format("needs {} bytes, {} allows {}", need_bytes, backend, allowed_bytes));
}

}  // namespace cyb
