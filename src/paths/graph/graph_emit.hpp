// GraphEmit: records a family body as IR. Fused ops are decomposed, so a stored graph holds plain
// ops only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "paths/emit.hpp"
#include "paths/forward.hpp"
#include "paths/tensor_source.hpp"

namespace cyb {

class GraphEmit final : public Emit {
 public:
  explicit GraphEmit(const TensorSource& tensors);

  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override;
  Result<ValueId> constant(std::span<const float> values, const Shape& shape) override;
  const TensorSpec& spec(ValueId value) const override { return values_[value].spec; }
  Result<ValueId> ids() override;
  Result<ValueId> positions() override;
  Result<ValueId> length() override;
  Result<ValueId> weight(std::string_view name, WeightUse use) override;
  Result<ValueId> output_rows(ValueId x) override { return x; }
  Result<void> output(std::string_view name, ValueId value) override;
  void label(std::string) override {}

  Graph take() { return std::move(graph_); }
  /// Weights asked for, in order, each (name, use) once.
  const std::vector<WeightNeed>& needs() const noexcept { return needs_; }

 private:
  struct Value {
    std::string name;
    TensorSpec spec;
  };
  ValueId add(std::string name, TensorSpec spec);
  ValueId input(std::string_view name, TensorSpec spec);

  const TensorSource& tensors_;
  Graph graph_;
  std::vector<Value> values_;
  std::map<std::string, ValueId, std::less<>> named_;  // inputs and weights, each once
  std::vector<WeightNeed> needs_;
};

}  // namespace cyb
