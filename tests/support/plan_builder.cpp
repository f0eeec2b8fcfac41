// Plans for tests: one arena slot per value.
#include "support/plan_builder.hpp"

#include <array>

namespace cyb::test {
namespace {

// In kBlocks form symbol 0 counts the rows of a run and symbol 1 the rows that are wanted.
constexpr std::uint32_t kRows = 0, kWanted = 1;

}  // namespace

PlanBuilder::PlanBuilder(Backend& backend, Form form, std::uint32_t max_tokens,
                         std::uint32_t past_tokens)
    : backend_(backend), form_(form), max_tokens_(max_tokens), past_tokens_(past_tokens) {
  values_.push_back({TensorSpec::none(), {}});
  plan_.max_tokens = max_tokens;
  plan_.max_outputs = max_tokens;
}

Shape PlanBuilder::bound(const TensorSpec& spec) const {
  const std::int64_t n = max_tokens_;
  const std::array<std::int64_t, 3> symbols = {form_ == Form::kBlocks ? n : 1, n, past_tokens_};
  return spec.bind(symbols).value();
}

ValueId PlanBuilder::add(TensorSpec spec, Operand operand) {
  operand.dtype = spec.dtype;
  operand.shape = bound(spec);
  if (form_ == Form::kBlocks && !spec.dims.empty() && spec.dims[0] == Dim::symbol(kRows)) {
    operand.rows = RowKind::kTokens;
  }
  if (form_ == Form::kBlocks && !spec.dims.empty() && spec.dims[0] == Dim::symbol(kWanted)) {
    operand.rows = RowKind::kOutputs;
  }
  values_.push_back({std::move(spec), operand});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId PlanBuilder::ids() {
  if (form_ == Form::kBlocks) {
    return add({DType::kI32, {Dim::symbol(kRows)}}, {.kind = Operand::Kind::kIds});
  }
  return add({DType::kI32, {Dim(1), Dim(max_tokens_)}}, {.kind = Operand::Kind::kIds});
}

Result<ValueId> PlanBuilder::positions() {
  const Dim n = form_ == Form::kBlocks ? Dim::symbol(kRows) : Dim(max_tokens_);
  return add({DType::kI32, {n}}, {.kind = Operand::Kind::kPositions});
}

ValueId PlanBuilder::output_rows() {
  return add({DType::kI32, {Dim::symbol(kWanted)}}, {.kind = Operand::Kind::kOutputRows});
}

Result<ValueId> PlanBuilder::weight(const std::string& name, DType dtype, const Shape& shape,
                                    std::span<const std::byte> bytes, WeightUse use) {
  CYB_ASSIGN(std::unique_ptr<Weight> weight,
             backend_.load_weight({name, dtype, shape, bytes}, use, {}));
  const DType read_as = use == WeightUse::kVector ? DType::kF32 : dtype;
  const ValueId id =
      add(TensorSpec::of(read_as, shape), {.kind = Operand::Kind::kWeight, .weight = weight.get()});
  weights_.push_back(std::move(weight));
  return id;
}

Result<ValueId> PlanBuilder::weight(const std::string& name, const Shape& shape,
                                    const std::vector<float>& values, WeightUse use) {
  return weight(name, DType::kF32, shape, std::as_bytes(std::span(values)), use);
}

Result<ValueId> PlanBuilder::constant(std::span<const float> values, const Shape& shape) {
  constants_.emplace_back(values.begin(), values.end());
  return weight("constant", shape, constants_.back(), WeightUse::kVector);
}

Result<std::vector<ValueId>> PlanBuilder::emit(const Op& op, std::span<const ValueId> inputs) {
  if (form_ == Form::kPlain && op_info(op.tag).fused) return decompose(op, inputs, *this);
  std::vector<TensorSpec> specs;
  Step step{op, {}, {}, std::string(op_info(op.tag).name)};
  for (const ValueId v : inputs) {
    specs.push_back(values_[v].spec);
    step.inputs.push_back(values_[v].operand);
  }
  CYB_ASSIGN(std::vector<TensorSpec> inferred, infer(op, specs));
  std::vector<ValueId> ids;
  for (TensorSpec& spec : inferred) {
    const std::uint64_t bytes = tensor_bytes(spec.dtype, bound(spec)).value();
    ids.push_back(add(form_ == Form::kPlain ? TensorSpec::of(spec.dtype, bound(spec)) : spec,
                      {.kind = Operand::Kind::kArena, .offset = plan_.arena_bytes}));
    plan_.arena_bytes += (bytes + 255) / 256 * 256;
    step.outputs.push_back(values_[ids.back()].operand);
  }
  plan_.steps.push_back(std::move(step));
  return ids;
}

Result<Plan> PlanBuilder::finish(std::span<const ValueId> outputs) {
  for (const ValueId v : outputs) plan_.outputs.push_back(values_[v].operand);
  return std::move(plan_);
}

}  // namespace cyb::test
