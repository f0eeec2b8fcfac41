// LoraEmit: an Emit that puts the branches of adapters beside the products and embeddings of
// another. What a step computes without its branch stays the step that it is without adapters, but
// for the gated block, whose branches lie before its activation.
#pragma once

#include <map>
#include <set>
#include <string>

#include "paths/emit.hpp"
#include "paths/lora.hpp"

namespace cyb {

class LoraEmit final : public Emit {
 public:
  /// Borrows both.
  LoraEmit(Emit& to, const LoraTerms& terms) : to_(to), terms_(terms) {}

  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override;
  Result<ValueId> constant(std::span<const float> values, const Shape& shape) override {
    return to_.constant(values, shape);
  }
  const TensorSpec& spec(ValueId value) const override { return to_.spec(value); }
  Result<ValueId> ids() override { return to_.ids(); }
  Result<ValueId> positions() override { return to_.positions(); }
  Result<ValueId> length() override { return to_.length(); }
  Result<ValueId> weight(std::string_view name, WeightUse use) override;
  Result<ValueId> output_rows(ValueId x) override { return to_.output_rows(x); }
  Result<void> output(std::string_view name, ValueId value) override {
    return to_.output(name, value);
  }
  void label(std::string text) override { to_.label(std::move(text)); }

  /// L11 for a branch that no step took. Call after the body.
  Result<void> check_all_used() const;

 private:
  const LoraTerm* term(ValueId weight) const noexcept;
  Result<ValueId> with_branch(ValueId y, ValueId x, const LoraTerm& term);
  Result<std::vector<ValueId>> norm_linear(const Op& op, std::span<const ValueId> inputs);
  Result<std::vector<ValueId>> gated_mlp(const Op& op, std::span<const ValueId> inputs);
  Result<ValueId> embedding(const Op& op, std::span<const ValueId> inputs, const LoraTerm& term);

  Emit& to_;
  const LoraTerms& terms_;
  std::map<ValueId, const LoraTerm*> weights_;  // those that have a branch
  std::set<const LoraTerm*> used_;
};

/// y + B (A x) as one op.
Op lora_op(const LoraTerm& term);

}  // namespace cyb
