// Building one stage: shapes are inferred node by node until one depends on data, then the nodes
// before it become a plan with a static memory layout.
#include "paths/graph/stage.hpp"

#include <algorithm>

#include "paths/graph/control.hpp"
#include "paths/plan/arena.hpp"

namespace cyb {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Ops whose result is the same bytes under another shape.
bool is_view(OpTag tag) noexcept {
  switch (tag) {
    case OpTag::kReshape:
    case OpTag::kReshapeTo:
    case OpTag::kFlatten:
    case OpTag::kSqueeze:
    case OpTag::kUnsqueeze:
    case OpTag::kIdentity:
      return true;
    default:
      return false;
  }
}

bool concrete(const TensorSpec& spec) {
  return std::ranges::all_of(spec.dims, [](const Dim& d) { return d.is_constant(); });
}

/// True if the elements are known numbers: the tensor needs no step.
bool has_number_value(const TensorSpec& spec) {
  if (!spec.value || !concrete(spec)) return false;
  if (spec.dtype != DType::kI64 && spec.dtype != DType::kI32) return false;
  return std::ranges::all_of(*spec.value, [](const Dim& d) { return d.is_constant(); });
}

Result<HostTensor> tensor_of_value(const TensorSpec& spec) {
  CYB_ASSIGN(HostTensor tensor, HostTensor::allocate(spec.dtype, *spec.bind({})));
  for (std::size_t i = 0; i < spec.value->size(); ++i) {
    const std::int64_t element = (*spec.value)[i].constant();
    if (spec.dtype == DType::kI64) tensor.bytes.as<std::int64_t>()[i] = element;
    if (spec.dtype == DType::kI32)
      tensor.bytes.as<std::int32_t>()[i] = static_cast<std::int32_t>(element);
  }
  return tensor;
}

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
  }

  Result<std::unique_ptr<Stage>> build(std::optional<std::vector<TensorSpec>> first) {
    std::uint32_t at = begin_;
    for (; at < program_.n_nodes(); ++at) {
      if (runs_between_plans(program_.nodes()[at].op.tag)) break;  // the forward runs it
      CYB_ASSIGN(const bool inferred, infer_node(at, at == begin_ ? first : std::nullopt));
      if (!inferred) break;
    }
    stage_->end = at;
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
      spec(node.outputs[k]) = std::move(outputs[k]);
      stage_->state.known[node.outputs[k]] = true;
    }
    return true;
  }

  bool needs_no_step(const TensorProgram::Node& node) {
    return std::ranges::all_of(node.outputs,
                               [&](std::uint32_t v) { return has_number_value(spec(v)); });
  }

  /// Memory roots and the last node of this stage that touches each.
  void find_roots() {
    for (std::uint32_t at = begin_; at < stage_->end; ++at) {
      const TensorProgram::Node& node = program_.nodes()[at];
      if (needs_no_step(node)) continue;
      const bool view = is_view(node.op.tag);
      if (!view) {
        for (const std::uint32_t v : node.outputs) root_[v] = v;
      } else {
        root_[node.outputs[0]] = root_[node.inputs[0]];
      }
      for (const std::uint32_t v : node.outputs) {
        if (root_[v] != kNone) touch(root_[v], v, at);
      }
      for (const std::uint32_t v : node.inputs) {
        if (root_[v] != kNone) touch(root_[v], v, at);
      }
    }
  }

  void touch(std::uint32_t root, std::uint32_t v, std::uint32_t at) {
    const bool kept = program_.values()[v].last_use >= stage_->end;
    life_[root] = std::max(life_[root], kept ? stage_->end : at);
  }

  Result<void> emit() {
    std::vector<std::vector<std::uint32_t>> ending(stage_->end + 1);
    for (std::uint32_t at = begin_; at < stage_->end; ++at) {
      const TensorProgram::Node& node = program_.nodes()[at];
      if (needs_no_step(node)) continue;
      if (is_view(node.op.tag)) {
        CYB_TRY(emit_view(node));
      } else {
        CYB_TRY(emit_step(node, ending));
      }
      for (const std::uint32_t v : ending[at]) arena_.free(operands_[v].offset);
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

  Result<void> emit_step(const TensorProgram::Node& node,
                         std::vector<std::vector<std::uint32_t>>& ending) {
    Step step{node.op, {}, {}, node.label};
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      CYB_ASSIGN(const Operand operand, operand_of(node.inputs[k], node.op, k));
      step.inputs.push_back(operand);
    }
    for (const std::uint32_t v : node.outputs) {
      const Shape shape = *spec(v).bind({});
      const auto size = tensor_bytes(spec(v).dtype, shape);
      if (!size)
        return fail(shape_mismatch(node.label, "a tensor that memory can hold", spec(v).text()));
      operands_[v] = {.kind = Operand::Kind::kArena,
                      .dtype = spec(v).dtype,
                      .shape = shape,
                      .offset = arena_.alloc(*size)};
      ending[life_[v]].push_back(v);
      step.outputs.push_back(operands_[v]);
    }
    plan_.steps.push_back(std::move(step));
    return {};
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

  ConstantWeights& weights_;
  const TensorProgram& program_;
  std::uint32_t begin_;
  std::unique_ptr<Stage> stage_;
  Plan plan_;
  ArenaPlanner arena_;
  std::vector<Operand> operands_;    // of this stage, per value
  std::vector<std::uint32_t> root_;  // value whose arena memory a value shares; kNone: no arena
  std::vector<std::uint32_t> life_;  // of roots: last node, or end
};

WeightUse weight_use(const TensorSpec& spec, const Op& op, std::size_t input) {
  if (spec.dtype == DType::kF32 && !takes_encoded(op, input)) return WeightUse::kVector;
  const bool product = takes_encoded(op, input) && op.tag != OpTag::kTokenEmbed &&
                       op.tag != OpTag::kPosEmbed && op.tag != OpTag::kDequantize;
  const DTypeClass cls = format_info(spec.dtype).cls;
  const bool matrix = spec.rank() == 2 && cls != DTypeClass::kInt && cls != DTypeClass::kBool &&
                      spec.dtype != DType::kF64;
  if (product && matrix) return WeightUse::kMatmul;
  return spec.dtype == DType::kF32 && op.tag != OpTag::kTokenEmbed ? WeightUse::kVector
                                                                   : WeightUse::kGather;
}

}  // namespace

Result<Operand> ConstantWeights::operand(std::uint32_t v, const Op& op, std::size_t input) {
  const TensorProgram::Value& value = program_.values()[v];
  const WeightUse use = weight_use(value.spec, op, input);
  Operand operand{
      .kind = Operand::Kind::kWeight, .dtype = value.spec.dtype, .shape = *value.spec.bind({})};
  if (value.source == TensorProgram::Source::kWeight) {
    const bool decoded = program_.stored_weight(value).dtype != value.spec.dtype;
    CYB_ASSIGN(operand.weight, weights_.get(value.name, decoded ? WeightUse::kVector : use));
    return operand;
  }
  std::unique_ptr<Weight>& weight = constants_[{v, use}];
  if (weight == nullptr) {
    const TensorView view = program_.constant(value).view();
    const std::uint64_t size = tensor_bytes(view.dtype, view.shape).value_or(0);
    CYB_ASSIGN(weight, backend().load_weight(
                           {value.name, view.dtype, view.shape, {view.data, size}}, use, {}));
  }
  operand.weight = weight.get();
  return operand;
}

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
