// The walk over the nodes. Bodies of functions and of decided If nodes are frames on a stack of
// bounded depth; the number of lowered nodes is bounded too, since functions may call functions.
#include "import/onnx/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <ranges>
#include <set>
#include <unordered_set>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/onnx/call.hpp"
#include "import/onnx/frame.hpp"
#include "import/onnx/rounds.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

// Opset 7 and later is what this importer is for; an older model runs where its ops mean the same.
constexpr std::int64_t kOldestOpset = 1;
constexpr std::uint64_t kMaxExpanded = 65536;

class Lowering {
 public:
  Lowering(const ModelProto& model, ExternalFiles& files) : model_(model), files_(files) {
    for (const FunctionProto& f : model.functions) {
      const std::string_view domain = f.domain == "ai.onnx" ? std::string_view() : f.domain;
      functions_.emplace(std::array{domain, f.name, f.overload}, &f);
    }
  }

  Result<Lowered> run() {
    CYB_ASSIGN(out_.opset, opset_of(model_.opsets, ""));
    if (out_.opset < kOldestOpset) {
      return fail(not_built(fmt::format("opset {}, older than {}", out_.opset, kOldestOpset)));
    }
    if (model_.graph.n_sparse != 0) return fail(not_built("sparse initializers"));
    CYB_TRY(check_ops());
    Frame main;
    main.nodes = model_.graph.nodes;
    main.opsets = model_.opsets;
    CYB_TRY(add_initializers(model_.graph, main));
    CYB_TRY(add_inputs(main));
    push(std::move(main));
    CYB_TRY(walk());
    std::vector<std::pair<std::string, Val>> outputs;
    for (const ValueInfo& output : model_.graph.outputs) {
      CYB_ASSIGN(const Val value, lookup(output.name));
      outputs.emplace_back(output.name, value);
    }
    if (outputs.empty()) return fail(onnx_error("a graph without outputs"));
    for (const auto& [name, value] : initializers_) {
      if (!read_.contains(value)) out_.unused.emplace_back(name);
    }
    CYB_ASSIGN(out_.built, builder_.finish(outputs));
    return std::move(out_);
  }

 private:
  Result<std::int64_t> opset_of(std::span<const OpsetId> opsets, std::string_view domain) const {
    for (const OpsetId& id : opsets) {
      const std::string_view have = id.domain == "ai.onnx" ? std::string_view() : id.domain;
      if (have == domain) return id.version;
    }
    // com.microsoft has one version, and exporters forget it.
    if (domain == "com.microsoft") return 1;
    if (domain.empty() && model_.ir_version < 3) return 1;
    return fail(onnx_error(fmt::format("no opset import of domain {}", json_quote(domain))));
  }

  const FunctionProto* find_function(const NodeProto& node) const {
    const auto at = functions_.find({node.domain, node.op_type, node.overload});
    return at == functions_.end() ? nullptr : at->second;
  }

  /// Every op has a row or a function; else all that have none, with their counts.
  Result<void> check_ops() const {
    std::map<std::string, std::uint64_t> missing;
    std::set<const FunctionProto*> seen;
    std::vector<std::span<const NodeProto>> work = {model_.graph.nodes};
    while (!work.empty()) {
      const std::span<const NodeProto> nodes = work.back();
      work.pop_back();
      for (const NodeProto& node : nodes) {
        if (const FunctionProto* f = find_function(node)) {
          if (seen.insert(f).second) work.emplace_back(f->nodes);
          continue;
        }
        const bool known = find_row(node.domain, node.op_type) != nullptr || has_graphs(node);
        if (!known) ++missing[shown_op(node)];
      }
    }
    if (missing.empty()) return {};
    std::string text;
    for (const auto& [op, count] : missing)
      text += fmt::format("{}{} x{}", text.empty() ? "" : ", ", op, count);
    return fail(not_built(fmt::format("the ONNX operators {}", text)));
  }

  Result<void> add_initializers(const GraphProto& graph, Frame& frame) {
    if (graph.n_sparse != 0) return fail(not_built("sparse initializers"));
    for (const TensorProto& proto : graph.initializers) {
      CYB_ASSIGN(HostTensor tensor, read_tensor(proto, files_));
      const Val value = builder_.constant(std::move(tensor), proto.name);
      if (!frame.names.emplace(proto.name, value).second)
        return fail(onnx_error(fmt::format("{} is defined twice", json_quote(proto.name))));
      if (frames_.empty()) initializers_.emplace_back(proto.name, value);
    }
    return {};
  }

  Result<void> add_inputs(Frame& frame) {
    for (const ValueInfo& input : model_.graph.inputs) {
      if (frame.names.contains(input.name)) {
        if (model_.ir_version >= 4) {
          out_.assumptions.push_back(
              fmt::format("input {} keeps its default value", json_quote(input.name)));
        }
        continue;
      }
      const auto refused = [&](std::string_view what) {
        return fail(not_built(fmt::format("input {}: {}", json_quote(input.name), what)));
      };
      if (!input.is_tensor) return refused("a sequence, map or optional");
      const auto dtype = dtype_of(input.type);
      if (!dtype) return refused(type_name(input.type));
      if (!input.has_shape) return refused("no shape");
      TensorSpec spec;
      spec.dtype = *dtype;
      for (const DimProto& dim : input.dims) {
        const bool number = dim.value && *dim.value >= 0;
        spec.dims.push_back(number ? Dim(*dim.value) : builder_.symbol(dim.param));
      }
      CYB_ASSIGN(const Val value, builder_.input(input.name, std::move(spec)));
      frame.names.emplace(input.name, value);
    }
    return {};
  }

  Result<Val> lookup(std::string_view name) {
    if (name.empty()) return Val{0};
    for (std::size_t at = frames_.size() - 1; at != SIZE_MAX; at = frames_[at].outer) {
      const auto found = frames_[at].names.find(name);
      if (found == frames_[at].names.end()) continue;
      read_.insert(found->second);
      return found->second;
    }
    return fail(
        onnx_error(fmt::format("{} is no input, initializer or earlier output", json_quote(name))));
  }

  Result<void> walk() {
    // A small file may call functions of functions, and loop: what it becomes is bounded.
    const std::uint64_t limit =
        std::min<std::uint64_t>(kMaxGraphNodes, kMaxExpanded + model_.graph.nodes.size());
    std::uint64_t steps = 0;
    while (true) {
      Frame& frame = frames_.back();
      if (frame.next == frame.nodes.size()) {
        if (frames_.size() == 1) return {};
        CYB_TRY(leave());
        continue;
      }
      if (++steps > limit)
        return fail(
            invalid_input(fmt::format("more than {} nodes in functions and rounds", limit)));
      const NodeProto& node = frame.nodes[frame.next++];
      auto done = lower(node);
      if (!done) return fail(std::move(done).error().in(shown_node(node)));
    }
  }

  Result<void> lower(const NodeProto& source) {
    CYB_ASSIGN(const NodeProto* node, resolve(source));
    if (const FunctionProto* f = find_function(*node)) return enter(*node, *f);
    CYB_ASSIGN(const std::int64_t opset, opset_of(frames_.back().opsets, node->domain));
    std::vector<Val> inputs;
    for (const std::string_view name : node->inputs) {
      CYB_ASSIGN(const Val value, lookup(name));
      inputs.push_back(value);
    }
    if (has_graphs(*node)) {
      if (node->op_type == "If") return decide(*node, inputs);
      if (opset < 9) return fail(not_built(fmt::format("{} of opset {}", node->op_type, opset)));
      CYB_ASSIGN(Rounds rounds, begin_rounds(*node, inputs, builder_));
      return next_round(std::make_shared<Rounds>(std::move(rounds)));
    }
    const OpRow* row = find_row(node->domain, node->op_type);
    if (row == nullptr) return fail(not_built("the ONNX operator"));
    if (opset < row->since)
      return fail(onnx_error(fmt::format("opset {} has no such operator", opset)));
    ++out_.op_counts[shown_op(*node)];
    Call call(builder_, files_, *node, opset, std::move(inputs));
    call.set_nan_tested(!node->outputs.empty() &&
                        frames_.back().nan_tested.contains(node->outputs[0]));
    row->lower(call);
    CYB_ASSIGN(const std::vector<Val> values, call.finish());
    return define(*node, values);
  }

  Result<void> define(const NodeProto& node, std::span<const Val> values) {
    for (std::size_t k = 0; k < node.outputs.size() && k < values.size(); ++k) {
      const std::string_view name = node.outputs[k];
      if (name.empty() || values[k] == 0) continue;
      if (!frames_.back().names.emplace(name, values[k]).second)
        return fail(onnx_error(fmt::format("{} is defined twice", json_quote(name))));
      if (frames_.size() == 1) builder_.prefer_name(values[k], name);
    }
    return {};
  }

  /// The node with attributes that refer to those of the call in their place.
  Result<const NodeProto*> resolve(const NodeProto& source) {
    const bool refers = std::ranges::any_of(
        source.attributes, [](const AttributeProto& a) { return !a.ref_name.empty(); });
    if (!refers) return &source;
    Frame& frame = frames_.back();
    NodeProto node = source;
    std::erase_if(node.attributes, [&](AttributeProto& a) {
      if (a.ref_name.empty()) return false;
      const AttributeProto* given = nullptr;
      const auto take = [&](std::span<const AttributeProto> from) {
        const auto at = std::ranges::find(from, a.ref_name, &AttributeProto::name);
        if (given == nullptr && at != from.end()) given = &*at;
      };
      // Inside a branch of If the attributes are those of the function around it.
      std::size_t at = frames_.size() - 1;
      while (frames_[at].outer != SIZE_MAX) at = frames_[at].outer;
      if (frames_[at].call != nullptr) take(frames_[at].call->attributes);
      take(frames_[at].defaults);
      if (given == nullptr) return true;  // not given: as if it were not there
      const std::string_view name = a.name;
      a = *given;
      a.name = name;
      a.ref_name = {};
      return false;
    });
    frame.resolved.push_back(std::move(node));
    return &frame.resolved.back();
  }

  Result<void> enter(const NodeProto& node, const FunctionProto& f) {
    if (frames_.size() > kMaxSubgraphDepth)
      return fail(invalid_input(fmt::format("functions deeper than {}", kMaxSubgraphDepth)));
    if (node.inputs.size() > f.inputs.size() || node.outputs.size() > f.outputs.size())
      return fail(onnx_error("more inputs or outputs than the function has"));
    Frame frame;
    frame.nodes = f.nodes;
    frame.call = &node;
    frame.opsets = f.opsets;
    frame.defaults = f.defaults;
    frame.outputs = f.outputs;
    for (std::size_t k = 0; k < f.inputs.size(); ++k) {
      CYB_ASSIGN(const Val value,
                 lookup(k < node.inputs.size() ? node.inputs[k] : std::string_view()));
      frame.names.emplace(f.inputs[k], value);
    }
    push(std::move(frame));
    return {};
  }

  /// A NaN may be tested for, or be replaced where a mask says so; converted before that or not.
  void push(Frame frame) {
    for (const NodeProto& node : frame.nodes | std::views::reverse) {
      const bool tests = node.op_type == "IsNaN" || node.op_type == "Where";
      const bool passes =
          node.op_type == "Cast" || node.op_type == "CastLike" || node.op_type == "Identity";
      if (tests) frame.nan_tested.insert(node.inputs.begin(), node.inputs.end());
      const bool passed = passes && !node.outputs.empty() && !node.inputs.empty() &&
                          frame.nan_tested.contains(node.outputs[0]);
      if (passed) frame.nan_tested.insert(node.inputs[0]);
    }
    frames_.push_back(std::move(frame));
  }

  /// An If whose condition is known: the branch that is taken.
  Result<void> decide(const NodeProto& node, std::span<const Val> inputs) {
    const HostTensor* condition =
        inputs.size() == 1 && inputs[0] != 0 ? builder_.known(inputs[0]) : nullptr;
    if (condition == nullptr || condition->dtype != DType::kBool || condition->bytes.size() != 1)
      return fail(not_built("If with a condition that the run decides"));
    if (frames_.size() > kMaxSubgraphDepth)
      return fail(invalid_input(fmt::format("sub-graphs deeper than {}", kMaxSubgraphDepth)));
    const std::string_view branch =
        condition->bytes[0] != std::byte{0} ? "then_branch" : "else_branch";
    const auto at = std::ranges::find(node.attributes, branch, &AttributeProto::name);
    if (at == node.attributes.end() || at->type != AttributeType::kGraph)
      return fail(onnx_error(fmt::format("no {}", branch)));
    CYB_ASSIGN(GraphProto parsed, parse_graph(at->message));
    auto graph = std::make_shared<GraphProto>(std::move(parsed));
    Frame frame;
    frame.nodes = graph->nodes;
    frame.outer = frames_.size() - 1;
    frame.call = &node;
    frame.opsets = frames_.back().opsets;
    for (const ValueInfo& output : graph->outputs) frame.outputs.push_back(output.name);
    if (node.outputs.size() > frame.outputs.size())
      return fail(onnx_error("more outputs than the branch has"));
    CYB_TRY(add_initializers(*graph, frame));
    frame.own = std::move(graph);
    push(std::move(frame));
    return {};
  }

  /// One more round, or the outputs of a Scan or Loop whose rounds are over.
  Result<void> next_round(std::shared_ptr<Rounds> rounds) {
    if (rounds->done >= rounds->count) {
      CYB_ASSIGN(const std::vector<Val> values, finish_rounds(*rounds, builder_));
      return define(*rounds->node, values);
    }
    if (frames_.size() > kMaxSubgraphDepth)
      return fail(invalid_input(fmt::format("sub-graphs deeper than {}", kMaxSubgraphDepth)));
    Frame frame;
    frame.nodes = rounds->body->nodes;
    frame.outer = frames_.size() - 1;
    frame.call = rounds->node;
    frame.opsets = frames_.back().opsets;
    frame.own = rounds->body;
    for (const ValueInfo& output : rounds->body->outputs) frame.outputs.push_back(output.name);
    CYB_TRY(add_initializers(*rounds->body, frame));
    CYB_ASSIGN(const auto inputs, round_inputs(*rounds, builder_));
    for (const auto& [name, value] : inputs) frame.names.insert_or_assign(name, value);
    frame.rounds = std::move(rounds);
    push(std::move(frame));
    return {};
  }

  Result<void> leave() {
    std::vector<Val> values;
    const std::shared_ptr<Rounds> rounds = frames_.back().rounds;
    const std::size_t n =
        rounds ? frames_.back().outputs.size() : frames_.back().call->outputs.size();
    for (std::size_t k = 0; k < n; ++k) {
      CYB_ASSIGN(const Val value, lookup(frames_.back().outputs[k]));
      values.push_back(value);
    }
    if (rounds) {
      frames_.pop_back();
      CYB_ASSIGN(const bool more, end_round(*rounds, values, builder_));
      if (!more) rounds->count = rounds->done;
      return next_round(rounds);
    }
    // The node lies in the frame below, or in what that frame keeps alive.
    const NodeProto* call = frames_.back().call;
    frames_.pop_back();
    return define(*call, values);
  }

  const ModelProto& model_;
  ExternalFiles& files_;
  Builder builder_;
  std::map<std::array<std::string_view, 3>, const FunctionProto*> functions_;
  std::deque<Frame> frames_;
  std::vector<std::pair<std::string_view, Val>> initializers_;  // of the main graph
  std::unordered_set<Val> read_;                                // values that some node takes
  Lowered out_;
};

}  // namespace

Result<Lowered> lower_model(const ModelProto& model, ExternalFiles& files) {
  return Lowering(model, files).run();
}

}  // namespace cyb::onnx
