// PlanEmit. Symbols of its specs: 0 = N (rows of the run), 1 = R (rows whose outputs are wanted).
#include "paths/plan/plan_emit.hpp"

#include <algorithm>
#include <array>

#include "paths/plan/arena.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {
namespace {

constexpr std::uint32_t kSymbolTokens = 0;
constexpr std::uint32_t kSymbolOutputs = 1;

RowKind row_kind(const TensorSpec& spec) {
  if (spec.dims.empty() || spec.dims[0].terms().size() != 1) return RowKind::kFixed;
  return spec.dims[0].terms()[0].first == kSymbolTokens ? RowKind::kTokens : RowKind::kOutputs;
}

}  // namespace

PlanEmit::PlanEmit(WeightTable& weights, std::uint32_t max_tokens, std::uint32_t max_outputs,
                   bool fuse)
    : weights_(weights),
      max_tokens_(max_tokens),
      max_outputs_(max_outputs),
      fuse_(fuse),
      values_(1) {
  values_[kNoValue].spec = TensorSpec::none();
}

ValueId PlanEmit::add(Value value) {
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size() - 1);
}

Result<ValueId> PlanEmit::ids() {
  return add({.kind = Operand::Kind::kIds, .spec = {DType::kI32, {Dim::symbol(kSymbolTokens)}}});
}

Result<ValueId> PlanEmit::positions() {
  return add(
      {.kind = Operand::Kind::kPositions, .spec = {DType::kI32, {Dim::symbol(kSymbolTokens)}}});
}

Result<ValueId> PlanEmit::length() {
  return add({.kind = Operand::Kind::kLength, .spec = {DType::kI32, {Dim(1)}}});
}

Result<ValueId> PlanEmit::weight(std::string_view name, WeightUse use) {
  auto spec = weights_.find(name);
  if (!spec) return fail(missing_tensor(name, weights_.model().model_type()));
  if (use == WeightUse::kVector) spec->dtype = DType::kF32;
  return add({.kind = Operand::Kind::kWeight,
              .spec = std::move(*spec),
              .name = std::string(name),
              .use = use});
}

Result<ValueId> PlanEmit::constant(std::span<const float> values, const Shape& shape) {
  return add({.kind = Operand::Kind::kWeight,
              .spec = TensorSpec::of(DType::kF32, shape),
              .host = std::vector<float>(values.begin(), values.end())});
}

Result<ValueId> PlanEmit::output_rows(ValueId x) {
  const ValueId rows = add(
      {.kind = Operand::Kind::kOutputRows, .spec = {DType::kI32, {Dim::symbol(kSymbolOutputs)}}});
  return one(Op{OpTag::kGather, Attrs{{std::int64_t{0}}}}, {x, rows});
}

Result<void> PlanEmit::output(std::string_view name, ValueId value) {
  outputs_.emplace_back(name, value);
  return {};
}

Result<std::size_t> PlanEmit::output_index(std::string_view name) const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].first == name) return i;
  }
  return fail(internal_error("plan has no output \"" + std::string(name) + "\""));
}

Result<std::vector<ValueId>> PlanEmit::emit(const Op& op, std::span<const ValueId> inputs) {
  std::vector<TensorSpec> specs;
  for (const ValueId v : inputs) specs.push_back(values_[v].spec);
  auto inferred = infer(op, specs);
  if (!inferred) return fail(std::move(inferred).error().in(label_));
  const OpInfo& info = op_info(op.tag);
  const bool all_known =
      !inputs.empty() && std::all_of(inputs.begin(), inputs.end(),
                                     [&](ValueId v) { return v == kNoValue || known(v); });
  if (all_known && info.reference != nullptr) return fold(op, inputs, *inferred);
  // Attention is ragged and paged: no plain ops can express it in a plan.
  const bool whole = fuse_ || op.tag == OpTag::kBlockAttention;
  if (info.fused && !(whole && weights_.backend().supports(op, specs))) {
    if (op.tag == OpTag::kBlockAttention) {
      return fail(unsupported_op(info.name, weights_.backend().name(), "f32"));
    }
    return decompose(op, inputs, *this);
  }
  std::vector<ValueId> outputs;
  for (TensorSpec& spec : *inferred) {
    outputs.push_back(add({.kind = Operand::Kind::kArena, .spec = std::move(spec)}));
  }
  steps_.push_back({op, {inputs.begin(), inputs.end()}, outputs, label_});
  return outputs;
}

Result<std::vector<float>> PlanEmit::host_values(ValueId v) {
  if (values_[v].name.empty()) return values_[v].host;
  return ModelTensors(weights_.model()).read_f32(values_[v].name);
}

Result<std::vector<ValueId>> PlanEmit::fold(const Op& op, std::span<const ValueId> inputs,
                                            std::span<const TensorSpec> outputs) {
  std::vector<std::vector<float>> held;
  std::vector<TensorView> views;
  for (const ValueId v : inputs) {
    if (v == kNoValue) {
      views.push_back({});
      continue;
    }
    CYB_ASSIGN(std::vector<float> values, host_values(v));
    held.push_back(std::move(values));
    views.push_back({DType::kF32, *values_[v].spec.bind({}),
                     reinterpret_cast<const std::byte*>(held.back().data())});
  }
  std::vector<ValueId> ids;
  std::vector<MutableTensorView> results;
  for (const TensorSpec& spec : outputs) {
    const auto shape = spec.bind({});
    if (!shape || spec.dtype != DType::kF32)
      return fail(internal_error("constant of unknown shape"));
    const ValueId id = add({.kind = Operand::Kind::kWeight, .spec = spec});
    values_[id].host.resize(static_cast<std::size_t>(shape->count()));
    results.push_back({DType::kF32, *shape, reinterpret_cast<std::byte*>(values_[id].host.data())});
    ids.push_back(id);
  }
  CYB_TRY(
      op_info(op.tag).reference(RefCall{.attrs = op.attrs, .inputs = views, .outputs = results}));
  return ids;
}

Result<const Weight*> PlanEmit::load(ValueId v) {
  Value& value = values_[v];
  if (value.loaded != nullptr) return value.loaded;
  if (!value.name.empty()) {
    CYB_ASSIGN(value.loaded, weights_.get(value.name, value.use));
  } else {
    CYB_ASSIGN(value.loaded,
               weights_.add_constant("constant", *value.spec.bind({}), std::move(value.host)));
  }
  return value.loaded;
}

std::vector<PlanEmit::PendingStep> PlanEmit::live_steps() const {
  std::vector<bool> needed(values_.size(), false);
  for (const auto& [name, value] : outputs_) needed[value] = true;
  std::vector<PendingStep> live;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const bool wanted = std::any_of(step->outputs.begin(), step->outputs.end(),
                                    [&](ValueId v) { return needed[v]; });
    if (!wanted) continue;
    for (const ValueId v : step->inputs) needed[v] = true;
    live.push_back(*step);
  }
  std::reverse(live.begin(), live.end());
  return live;
}

void PlanEmit::place(std::span<const PendingStep> steps, Plan& plan) {
  const std::array<std::int64_t, 2> maxima = {max_tokens_, max_outputs_};
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    for (const ValueId v : steps[i].inputs) values_[v].last_use = i;
    for (const ValueId v : steps[i].outputs) values_[v].last_use = i;
  }
  for (const auto& [name, value] : outputs_)
    values_[value].last_use = static_cast<std::uint32_t>(steps.size());
  ArenaPlanner arena;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    for (const ValueId v : steps[i].outputs) {
      const TensorSpec& spec = values_[v].spec;
      values_[v].offset = arena.alloc(tensor_bytes(spec.dtype, *spec.bind(maxima)).value_or(0));
    }
    std::vector<ValueId> ended = steps[i].inputs;
    ended.insert(ended.end(), steps[i].outputs.begin(), steps[i].outputs.end());
    std::sort(ended.begin(), ended.end());
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
    for (const ValueId v : ended) {
      if (values_[v].kind == Operand::Kind::kArena && values_[v].last_use == i)
        arena.free(values_[v].offset);
    }
  }
  plan.arena_bytes = arena.peak_bytes();
}

Result<Operand> PlanEmit::operand(ValueId v) {
  const Value& value = values_[v];
  if (v == kNoValue) return Operand{};
  const std::array<std::int64_t, 2> maxima = {max_tokens_, max_outputs_};
  const auto shape = value.spec.bind(maxima);
  if (!shape) return fail(internal_error("plan value without a shape"));
  Operand out{
      .kind = value.kind, .rows = row_kind(value.spec), .dtype = value.spec.dtype, .shape = *shape};
  if (value.kind == Operand::Kind::kWeight) {
    CYB_ASSIGN(out.weight, load(v));
  } else if (value.kind == Operand::Kind::kArena) {
    out.offset = value.offset;
  }
  return out;
}

Result<Plan> PlanEmit::finish() {
  Plan plan;
  plan.max_tokens = max_tokens_;
  plan.max_outputs = max_outputs_;
  const std::vector<PendingStep> steps = live_steps();
  place(steps, plan);
  for (const PendingStep& pending : steps) {
    Step step{pending.op, {}, {}, pending.label};
    for (const ValueId v : pending.inputs) {
      CYB_ASSIGN(Operand in, operand(v));
      step.inputs.push_back(in);
    }
    for (const ValueId v : pending.outputs) {
      CYB_ASSIGN(Operand out, operand(v));
      step.outputs.push_back(out);
    }
    plan.steps.push_back(std::move(step));
  }
  for (const auto& [name, value] : outputs_) {
    CYB_ASSIGN(Operand out, operand(value));
    plan.outputs.push_back(out);
  }
  return plan;
}

}  // namespace cyb
