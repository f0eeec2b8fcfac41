// PlanEmit: lowers a family body to a Plan for one backend. Values are [N, ...] rows; ops whose
// inputs are all weights are computed here, once; a fused op without a kernel is decomposed; arena
// offsets come from lifetimes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/plan.hpp"
#include "paths/emit.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

class PlanEmit final : public Emit {
 public:
  /// `fuse`: fused ops stay whole where the backend has a kernel.
  PlanEmit(WeightTable& weights, std::uint32_t max_tokens, std::uint32_t max_outputs,
           bool fuse = true);

  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override;
  Result<ValueId> constant(std::span<const float> values, const Shape& shape) override;
  const TensorSpec& spec(ValueId value) const override { return values_[value].spec; }
  Result<ValueId> ids() override;
  Result<ValueId> positions() override;
  Result<ValueId> length() override;
  Result<ValueId> weight(std::string_view name, WeightUse use) override;
  Result<ValueId> output_rows(ValueId x) override;
  Result<void> output(std::string_view name, ValueId value) override;
  void label(std::string text) override { label_ = std::move(text); }

  /// The finished plan. Values that no output needs are dropped. Call once.
  Result<Plan> finish();
  /// Index of a named output in Plan::outputs.
  Result<std::size_t> output_index(std::string_view name) const;

 private:
  struct Value {
    Operand::Kind kind = Operand::Kind::kNone;
    TensorSpec spec{};
    // Known at build time: a tensor of the model (name set) or computed values.
    std::string name{};
    WeightUse use = WeightUse::kVector;
    std::vector<float> host{};
    const Weight* loaded = nullptr;
    // Arena lifetime in step indices.
    std::uint32_t last_use = 0;
    std::uint64_t offset = 0;
  };
  struct PendingStep {
    Op op;
    std::vector<ValueId> inputs, outputs;
    std::string label;
  };

  ValueId add(Value value);
  bool known(ValueId v) const { return values_[v].kind == Operand::Kind::kWeight; }
  Result<std::vector<ValueId>> fold(const Op& op, std::span<const ValueId> inputs,
                                    std::span<const TensorSpec> outputs);
  Result<const Weight*> load(ValueId v);
  Result<std::vector<float>> host_values(ValueId v);
  std::vector<PendingStep> live_steps() const;
  void place(std::span<const PendingStep> steps, Plan& plan);
  Result<Operand> operand(ValueId v);

  WeightTable& weights_;
  std::uint32_t max_tokens_, max_outputs_;
  bool fuse_;
  std::vector<Value> values_;
  std::vector<PendingStep> steps_;
  std::vector<std::pair<std::string, ValueId>> outputs_;
  std::string label_;
};

}  // namespace cyb
