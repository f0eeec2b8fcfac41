// Static checks of a plan.
#include "backends/reference/plan_check.hpp"

#include <algorithm>

#include "backends/reference/fused.hpp"
#include "backends/reference/weight.hpp"
#include "base/checked.hpp"

namespace cyb::reference {
namespace {

Result<void> check_operand(const Plan& plan, const Operand& operand) {
  if (operand.kind == Operand::Kind::kWeight) {
    const auto* weight = dynamic_cast<const ReferenceWeight*>(operand.weight);
    if (weight == nullptr) return fail(internal_error("a weight of another backend in a plan"));
    const TensorView view = weight->view();
    if (view.dtype != operand.dtype || view.shape.count() != operand.shape.count()) {
      return fail(
          internal_error("a weight operand that does not fit its weight: " + weight->name()));
    }
    return {};
  }
  if (operand.kind == Operand::Kind::kTensor && operand.index >= plan.tensors.size())
    return fail(internal_error("a tensor operand that the plan does not list"));
  if (operand.kind != Operand::Kind::kArena) return {};
  const auto bytes = tensor_bytes(operand.dtype, operand.shape);
  if (!bytes || operand.offset % 64 != 0 || !range_fits(operand.offset, *bytes, plan.arena_bytes)) {
    return fail(internal_error("an operand outside the arena"));
  }
  return {};
}

TensorSpec spec_of(const Operand& operand) {
  if (operand.kind == Operand::Kind::kNone) return TensorSpec::none();
  return TensorSpec::of(operand.dtype, operand.shape);
}

Result<void> check_shapes(const Step& step) {
  std::vector<TensorSpec> inputs;
  for (const Operand& in : step.inputs) inputs.push_back(spec_of(in));
  CYB_ASSIGN(const std::vector<TensorSpec> inferred, infer(step.op, inputs));
  if (inferred.size() != step.outputs.size()) {
    return fail(internal_error("a step with a wrong number of outputs"));
  }
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    const TensorSpec& want = inferred[i];
    const TensorSpec got = spec_of(step.outputs[i]);
    const bool same = want.dtype == got.dtype &&
                      std::ranges::equal(want.dims, got.dims, [](const Dim& a, const Dim& b) {
                        return !certainly_differ(a, b);
                      });
    if (!same) return fail(shape_mismatch(op_info(step.op.tag).name, want.text(), got.text()));
  }
  return {};
}

void note_facts(const Step& step, PlanFacts& facts) {
  const OpTag tag = step.op.tag;
  if (tag == OpTag::kTokenEmbed && step.inputs[0].kind == Operand::Kind::kIds) {
    facts.vocab_size = step.inputs[1].shape[0];
  }
  if (tag == OpTag::kKvCache || tag == OpTag::kBlockAttention) {
    facts.kv_layers = std::max(facts.kv_layers, step.op.attrs.u32(0) + 1);  // `layer` comes first
  }
}

}  // namespace

Result<PlanFacts> check_plan(const Plan& plan) {
  PlanFacts facts;
  for (const Step& step : plan.steps) {
    const auto run = [&]() -> Result<void> {
      for (const Operand& in : step.inputs) CYB_TRY(check_operand(plan, in));
      for (const Operand& in : step.fused_inputs) CYB_TRY(check_operand(plan, in));
      for (const Operand& out : step.outputs) {
        if (out.kind != Operand::Kind::kArena) {
          return fail(internal_error("a step output outside the arena"));
        }
        CYB_TRY(check_operand(plan, out));
      }
      CYB_TRY(check_shapes(step));
      return check_fused_ops(step);
    };
    auto result = run();
    if (!result) return fail(std::move(result).error().in(step.label));
    note_facts(step, facts);
  }
  for (const Operand& out : plan.outputs) {
    if (out.kind != Operand::Kind::kArena || (plan.token_step && out.dtype != DType::kF32)) {
      return fail(internal_error("plan outputs are values of the arena, f32 for a token step"));
    }
    CYB_TRY(check_operand(plan, out));
  }
  return facts;
}

}  // namespace cyb::reference
