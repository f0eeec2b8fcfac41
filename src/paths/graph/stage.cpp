// Building one stage: shapes are inferred node by node until one depends on data, then the nodes
// before it become a plan with a static memory layout.
#include "paths/graph/stage.hpp"

#include <algorithm>

#include "ops/elementwise.hpp"
#include "paths/graph/control.hpp"
#include "paths/graph/fusion.hpp"
#include "paths/graph/stage_values.hpp"
#include "paths/plan/arena.hpp"

namespace cyb {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

class Builder {
 public:
  Builder(ConstantWeights& weights, StageState state, std::uint32_t begin, std::uint32_t depth)
      : weights_(weights), program_(weights.program()), begin_(begin) {
    stage_ = std::make_unique<Stage>();
    stage_->state = std::move(state);
    stage_->depth = depth;
    operands_.resize(program_.values().size());
    root_.assign(program_.values().size(), kNone);
    life_.resize(program_.values().size(), 0);
    taken_.resize(program_.values().size(), false);
  }

  Result<std::unique_ptr<Stage>> build(const std::optional<std::vector<TensorSpec>>& first) {
    std::uint32_t at = begin_;
    for (; at < program_.n_nodes(); ++at) {
      if (runs_between_plans(program_.nodes()[at].op.tag)) break;  // the forward runs it
      CYB_ASSIGN(const bool inferred, infer_node(at, at == begin_ ? first : std::nullopt));
      if (!inferred) break;
    }
    stage_->end = at;
    if (weights_.options().fuse) find_fusion();
    find_roots();
    CYB_TRY(emit());
    CYB_TRY(finish());
    return std::move(stage_);
  }

 private:
  TensorSpec& spec(std::uint32_t v) { return stage_->state.specs[v]; }

  /// A spec for shape rules: concrete, or a constant's with its value.
  const TensorSpec& input_spec(std::uint32_t v) {
    static const TensorSpec kAbsent = TensorSpec::none();
    if (v == 0) return kAbsent;
    return stage_->state.known[v] ? stage_->state.specs[v] : program_.values()[v].spec;
  }

  /// False: the output shapes depend on data that is not there yet.
  Result<bool> infer_node(std::uint32_t at, std::optional<std::vector<TensorSpec>> given) {
    const TensorProgram::Node& node = program_.nodes()[at];
    std::vector<TensorSpec> outputs;
    if (given) {
      outputs = *std::move(given);
    } else {
      std::vector<TensorSpec> inputs;
      for (const std::uint32_t v : node.inputs) inputs.push_back(input_spec(v));
      auto inferred = infer(node.op, inputs);
      if (!inferred) return fail(std::move(inferred).error().in("graph: " + node.label));
      outputs = *std::move(inferred);
      if (!std::ranges::all_of(outputs, concrete)) return false;
    }
    if (outputs.size() != node.outputs.size())
      return fail(internal_error("another number of outputs than validated: " + node.label));
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      CYB_TRY(check_size(outputs[k], node.label));
      spec(node.outputs[k]) = std::move(outputs[k]);
      stage_->state.known[node.outputs[k]] = true;
    }
    return true;
  }

  bool needs_no_step(const TensorProgram::Node& node) {
    return std::ranges::all_of(node.outputs,
                               [&](std::uint32_t v) { return has_number_value(spec(v)); });
  }

  void find_fusion() {
    FusionInput input{program_, begin_, stage_->end, stage_->state.specs, {}};
    for (std::uint32_t at = begin_; at < stage_->end; ++at) {
      const TensorProgram::Node& node = program_.nodes()[at];
      input.is_step.push_back(!is_view(node.op.tag) && !needs_no_step(node));
    }
    fusion_ = Fusion::find(input, [&](std::uint32_t head, std::span<const std::uint32_t> members) {
      const Step step = step_of(
          head, members, [&](std::uint32_t v, const Op&, std::size_t) { return shape_of(v); });
      return weights_.backend().fuses(step);
    });
  }

  /// An operand with dtype and shape alone.
  Operand shape_of(std::uint32_t v) {
    if (v == 0) return {};
    const TensorProgram::Source source = program_.values()[v].source;
    const bool stored =
        source == TensorProgram::Source::kWeight || source == TensorProgram::Source::kConstant;
    const TensorSpec& spec = input_spec(v);
    return {.kind = stored ? Operand::Kind::kWeight : Operand::Kind::kArena,
            .dtype = spec.dtype,
            .shape = *spec.bind({})};
  }

  /// The step of a node and what is fused into it. `operand(v, op, input)` gives inputs and
  /// outputs.
  template <class F>
  Step step_of(std::uint32_t head, std::span<const std::uint32_t> members, F operand) {
    const TensorProgram::Node& node = program_.nodes()[head];
    Step step{node.op, {}, {}, node.label};
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      step.inputs.push_back(operand(node.inputs[k], node.op, k));
    std::vector<std::uint32_t> results = {node.outputs[0]};
    for (const std::uint32_t at : members) {
      const TensorProgram::Node& member = program_.nodes()[at];
      FusedOp fused{member.op, {}};
      for (std::size_t k = 0; k < member.inputs.size(); ++k) {
        const std::uint32_t v = member.inputs[k];
        const auto own = std::ranges::find(results, v);
        if (own != results.end()) {
          fused.inputs.push_back({true, static_cast<std::uint32_t>(own - results.begin())});
          continue;
        }
        fused.inputs.push_back({false, static_cast<std::uint32_t>(step.fused_inputs.size())});
        step.fused_inputs.push_back(operand(v, member.op, k));
      }
      step.label += " + " + std::string(op_info(member.op.tag).name);
      step.fused.push_back(std::move(fused));
      results.push_back(member.outputs[0]);
    }
    const auto& outputs = members.empty() ? node.outputs : program_.nodes()[members.back()].outputs;
    for (const std::uint32_t v : outputs) step.outputs.push_back(shape_of(v));
    return step;
  }

  /// Memory roots and the last node of this stage that touches each.
  void find_roots() {
    for (std::uint32_t at = begin_; at < stage_->end; ++at) {
      const TensorProgram::Node& node = program_.nodes()[at];
      if (needs_no_step(node)) continue;
      const std::uint32_t head = fusion_.head(at);
      const auto members = fusion_.members(head);
      const bool inner = !members.empty() && at != members.back();  // its result has no memory
      if (is_view(node.op.tag)) {
        root_[node.outputs[0]] = root_[node.inputs[0]];
      } else if (!inner) {
        for (const std::uint32_t v : node.outputs) root_[v] = v;
      }
      for (const std::uint32_t v : node.outputs) touch(v, head);
      for (const std::uint32_t v : node.inputs) touch(v, head);
    }
  }

  void touch(std::uint32_t v, std::uint32_t at) {
    const std::uint32_t root = root_[v];
    if (root == kNone) return;
    const bool kept = program_.values()[v].last_use >= stage_->end;
    life_[root] = std::max(life_[root], kept ? stage_->end : at);
  }

  Result<void> emit() {
    std::vector<std::vector<std::uint32_t>> ending(stage_->end + 1);
    for (std::uint32_t at = begin_; at < stage_->end; ++at) {
      const TensorProgram::Node& node = program_.nodes()[at];
      if (needs_no_step(node) || fusion_.head(at) != at) continue;
      if (is_view(node.op.tag)) {
        CYB_TRY(emit_view(node));
      } else {
        CYB_TRY(emit_step(at, ending));
      }
      for (const std::uint32_t v : ending[at]) {
        if (!taken_[v]) arena_.free(operands_[v].offset);
      }
    }
    plan_.arena_bytes = arena_.peak_bytes();
    return {};
  }

  Result<void> emit_view(const TensorProgram::Node& node) {
    CYB_ASSIGN(Operand operand, operand_of(node.inputs[0], node.op, 0));
    operand.shape = *spec(node.outputs[0]).bind({});
    const std::uint32_t in = node.inputs[0], out = node.outputs[0];
    operands_[out] = operand;
    if (operand.kind == Operand::Kind::kTensor || operand.kind == Operand::Kind::kWeight) {
      auto source = source_of(in);
      if (!source) return fail(std::move(source).error());
      source->shape = operand.shape;
      stage_->state.found[out] = *source;
    }
    return {};
  }

  Result<void> emit_step(std::uint32_t at, std::vector<std::vector<std::uint32_t>>& ending) {
    const auto members = fusion_.members(at);
    Result<void> found;
    Step step = step_of(at, members, [&](std::uint32_t v, const Op& op, std::size_t k) {
      auto operand = operand_of(v, op, k);
      if (operand) return *std::move(operand);
      found = fail(std::move(operand).error());
      return Operand{};
    });
    CYB_TRY(std::move(found));
    const auto& outputs = program_.nodes()[members.empty() ? at : members.back()].outputs;
    const std::uint32_t shared = shared_memory(at, outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      Operand& out = operands_[outputs[k]] = step.outputs[k];
      const std::uint64_t size = tensor_bytes(out.dtype, out.shape).value_or(0);
      out.offset = shared == kNone ? arena_.alloc(size) : operands_[shared].offset;
      step.outputs[k] = out;
      ending[life_[outputs[k]]].push_back(outputs[k]);
    }
    if (shared != kNone) taken_[shared] = true;
    const TensorProgram::Value& first = program_.values()[program_.nodes()[at].outputs[0]];
    stage_->steps.push_back({op_names(step), first.name});
    plan_.steps.push_back(std::move(step));
    return {};
  }

  /// Root of an input whose memory the only output of a step takes over; kNone: none.
  std::uint32_t shared_memory(std::uint32_t at, std::span<const std::uint32_t> outputs) {
    if (!weights_.options().in_place || outputs.size() != 1) return kNone;
    const TensorProgram::Node& node = program_.nodes()[at];
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const std::uint32_t v = node.inputs[k], root = root_[v];
      if (v == 0 || root == kNone || !works_in_place(node.op.tag, k)) continue;
      const Operand& from = operands_[v];
      const bool ends = from.kind == Operand::Kind::kArena && life_[root] == at && !taken_[root];
      if (!ends || from.dtype != spec(outputs[0]).dtype ||
          from.shape.count() != spec(outputs[0]).bind({})->count())
        continue;
      if (times_read(at, root) == 1) return root;
    }
    return kNone;
  }

  /// How many inputs of a step lie in the memory of `root`.
  std::size_t times_read(std::uint32_t at, std::uint32_t root) const {
    const auto count = [&](std::uint32_t node) {
      return static_cast<std::size_t>(
          std::ranges::count_if(program_.nodes()[node].inputs,
                                [&](std::uint32_t v) { return v != 0 && root_[v] == root; }));
    };
    std::size_t n = count(at);
    for (const std::uint32_t member : fusion_.members(at)) n += count(member);
    return n;
  }

  Result<Operand> operand_of(std::uint32_t v, const Op& op, std::size_t input) {
    if (v == 0) return Operand{};
    if (operands_[v].kind != Operand::Kind::kNone) return operands_[v];
    const TensorProgram::Value& value = program_.values()[v];
    if (value.source == TensorProgram::Source::kWeight ||
        value.source == TensorProgram::Source::kConstant) {
      return weights_.operand(v, op, input);
    }
    if (!stage_->state.found[v] && has_number_value(spec(v))) CYB_TRY(add_constant(v));
    if (operands_[v].kind != Operand::Kind::kNone) return operands_[v];
    CYB_ASSIGN(const StageSource source, source_of(v));
    if (source.kind == StageSource::Kind::kHost) {  // a constant under another shape
      CYB_TRY(add_host(v, {source.dtype, source.shape, source.host}));
      return operands_[v];
    }
    operands_[v] = {.kind = Operand::Kind::kTensor,
                    .dtype = source.dtype,
                    .shape = source.shape,
                    .index = static_cast<std::uint32_t>(stage_->tensors.size())};
    stage_->tensors.push_back(source);
    plan_.tensors.push_back(TensorSpec::of(source.dtype, source.shape));
    return operands_[v];
  }

  /// A value that shapes decide, as a weight of the stage.
  Result<void> add_constant(std::uint32_t v) {
    CYB_ASSIGN(HostTensor tensor, tensor_of_value(spec(v)));
    CYB_TRY(add_host(v, tensor.view()));
    stage_->constants.push_back(std::move(tensor));
    return {};
  }

  Result<void> add_host(std::uint32_t v, const TensorView& view) {
    const WeightSource source{program_.values()[v].name,
                              view.dtype,
                              view.shape,
                              {view.data, tensor_bytes(view.dtype, view.shape).value_or(0)}};
    CYB_ASSIGN(std::unique_ptr<Weight> weight,
               weights_.backend().load_weight(source, WeightUse::kGather, {}));
    operands_[v] = {.kind = Operand::Kind::kWeight,
                    .dtype = view.dtype,
                    .shape = view.shape,
                    .weight = weight.get()};
    stage_->weights.push_back(std::move(weight));
    return {};
  }

  /// Where a value of an earlier stage, an input, a weight or a constant is found on the host.
  Result<StageSource> source_of(std::uint32_t v) {
    if (stage_->state.found[v]) return *stage_->state.found[v];
    const TensorProgram::Value& value = program_.values()[v];
    TensorView view;
    if (value.source == TensorProgram::Source::kConstant) {
      view = program_.constant(value).view();
    } else if (value.source == TensorProgram::Source::kWeight) {
      view = program_.stored_weight(value);
      if (view.dtype != value.spec.dtype)
        return fail(not_built("a graph that gives out the encoded weight \"" + value.name + "\""));
    } else if (has_number_value(spec(v))) {
      CYB_ASSIGN(HostTensor tensor, tensor_of_value(spec(v)));
      view = tensor.view();
      stage_->constants.push_back(std::move(tensor));
    } else {
      return fail(internal_error("a value without a source: " + value.name));
    }
    return StageSource{StageSource::Kind::kHost, 0, 0, view.dtype, view.shape, view.data};
  }

  Result<void> finish() {
    for (std::uint32_t v = 1; v < operands_.size(); ++v) {
      if (operands_[v].kind != Operand::Kind::kArena) continue;
      if (program_.values()[v].last_use < stage_->end) continue;
      stage_->state.found[v] = StageSource{StageSource::Kind::kStage,
                                           stage_->depth,
                                           static_cast<std::uint32_t>(plan_.outputs.size()),
                                           operands_[v].dtype,
                                           operands_[v].shape,
                                           nullptr};
      plan_.outputs.push_back(operands_[v]);
    }
    if (!plan_.steps.empty()) {
      plan_.token_step = false;
      CYB_ASSIGN(stage_->executable, weights_.backend().compile(std::move(plan_)));
    }
    note_executable();
    if (stage_->end < program_.n_nodes()) {
      for (const std::uint32_t v : program_.nodes()[stage_->end].inputs) {
        stage_->awaited.emplace_back();
        if (v == 0) continue;
        CYB_ASSIGN(stage_->awaited.back(), source_of(v));
      }
      return {};
    }
    for (const std::uint32_t v : program_.output_values()) {
      CYB_ASSIGN(const StageSource source, source_of(v));
      stage_->outputs.push_back(source);
    }
    return {};
  }

  void note_executable() {
    // Specs and operands of a stage, roughly.
    stage_->bytes = program_.values().size() * (sizeof(TensorSpec) + 2 * sizeof(Operand));
    for (const HostTensor& tensor : stage_->constants) stage_->bytes += tensor.bytes.size();
    if (stage_->executable == nullptr) return;
    stage_->bytes += stage_->executable->most_bytes({});
    stage_->times.resize(stage_->steps.size());
    for (std::size_t i = 0; i < stage_->steps.size(); ++i)
      stage_->steps[i].fallback = stage_->executable->is_fallback(i);
  }

  ConstantWeights& weights_;
  const TensorProgram& program_;
  std::uint32_t begin_;
  std::unique_ptr<Stage> stage_;
  Plan plan_;
  ArenaPlanner arena_;
  std::vector<Operand> operands_;    // of this stage, per value
  std::vector<std::uint32_t> root_;  // value whose arena memory a value shares; kNone: no arena
  std::vector<std::uint32_t> life_;  // of roots: last node, or end
  std::vector<bool> taken_;          // roots whose memory a later one has
  Fusion fusion_;
};

}  // namespace

Result<std::unique_ptr<Stage>> build_first_stage(ConstantWeights& weights, StageState state) {
  return Builder(weights, std::move(state), 0, 0).build(std::nullopt);
}

Result<std::unique_ptr<Stage>> build_next_stage(ConstantWeights& weights, const Stage& before,
                                                std::vector<TensorSpec> awaited_specs) {
  const TensorProgram::Node& node = weights.program().nodes()[before.end];
  if (!runs_between_plans(node.op.tag)) {
    return Builder(weights, before.state, before.end, before.depth + 1)
        .build(std::move(awaited_specs));
  }
  StageState state = before.state;
  for (std::uint32_t k = 0; k < node.outputs.size(); ++k) {
    const std::uint32_t v = node.outputs[k];
    state.found[v] = StageSource{StageSource::Kind::kControl, before.end, k, awaited_specs[k].dtype,
                                 *awaited_specs[k].bind({}),  nullptr};
    state.specs[v] = std::move(awaited_specs[k]);
    state.known[v] = true;
  }
  return Builder(weights, std::move(state), before.end + 1, before.depth + 1).build(std::nullopt);
}

}  // namespace cyb
