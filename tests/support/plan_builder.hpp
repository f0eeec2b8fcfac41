// PlanBuilder: an OpSink that makes plans for tests, in two forms. kBlocks: rows [N, ...] of a
// ragged run, fused ops as steps. kPlain: fixed shapes [1, S, ...] of one sequence with P past
// positions, fused ops decomposed, as the graph path does.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"

namespace cyb::test {

class PlanBuilder final : public OpSink {
 public:
  enum class Form { kBlocks, kPlain };

  PlanBuilder(Backend& backend, Form form, std::uint32_t max_tokens, std::uint32_t past_tokens = 0);

  ValueId ids();
  Result<ValueId> positions() override;
  ValueId output_rows();
  /// i32 [1]: the whole length of the rows' sequence.
  ValueId length() { return add({DType::kI32, {Dim(1)}}, {.kind = Operand::Kind::kLength}); }
  /// A stored tensor; `bytes` must outlive the backend's weight.
  Result<ValueId> weight(const std::string& name, DType dtype, const Shape& shape,
                         std::span<const std::byte> bytes, WeightUse use);
  Result<ValueId> weight(const std::string& name, const Shape& shape,
                         const std::vector<float>& values, WeightUse use);
  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override;
  Result<ValueId> constant(std::span<const float> values, const Shape& shape) override;
  const TensorSpec& spec(ValueId value) const override { return values_[value].spec; }

  /// The plan with `outputs` as results. Intermediates have room of their own.
  Result<Plan> finish(std::span<const ValueId> outputs);
  /// Weights that the plan borrows.
  std::vector<std::unique_ptr<Weight>> take_weights() { return std::move(weights_); }

 private:
  struct Value {
    TensorSpec spec;
    Operand operand;
  };
  ValueId add(TensorSpec spec, Operand operand);
  Shape bound(const TensorSpec& spec) const;

  Backend& backend_;
  Form form_;
  std::uint32_t max_tokens_, past_tokens_;
  std::deque<Value> values_;
  std::deque<std::vector<float>> constants_;
  std::vector<std::unique_ptr<Weight>> weights_;
  Plan plan_;
};

}  // namespace cyb::test
