// Curated runs: submit and sync, nothing else happens between tokens.
#include "paths/plan/plan_forward.hpp"

#include "paths/lora_emit.hpp"
#include "paths/plan/plan_emit.hpp"

namespace cyb {

Result<std::unique_ptr<PlanForward>> PlanForward::build(const FamilyModel& family,
                                                        WeightTable& weights,
                                                        const ForwardOptions& options) {
  PlanEmit emit(weights, options.max_tokens, options.max_outputs, options.fuse);
  if (weights.lora().empty()) {
    CYB_TRY(family.body(emit));
  } else {
    LoraEmit adapted(emit, weights.lora());
    CYB_TRY(family.body(adapted));
    CYB_TRY(adapted.check_all_used());
  }
  auto out = std::unique_ptr<PlanForward>(new PlanForward);
  CYB_ASSIGN(out->logits_index_, emit.output_index("logits"));
  CYB_ASSIGN(Plan plan, emit.finish());
  CYB_ASSIGN(out->executable_, weights.backend().compile(std::move(plan)));
  out->options_ = options;
  out->vocab_size_ = family.vocab_size();
  out->max_positions_ = family.max_positions();
  out->kv_layers_ = family.kv_layers();
  return out;
}

Result<void> PlanForward::run(const StepParams& params, std::stop_token stop) {
  CYB_TRY(executable_->submit(params));
  return executable_->sync(std::move(stop));
}

}  // namespace cyb
