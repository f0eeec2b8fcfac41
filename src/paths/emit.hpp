// Emit: what a family body writes to. GraphEmit records it as IR, PlanEmit lowers it to steps; the
// body is written once. Rows: in a plan every activation is [N, ...] (tokens of a ragged run), in a
// graph [B, S, ...]; bodies never look at leading dims.
#pragma once

#include <string>
#include <string_view>

#include "backends/backend.hpp"
#include "ops/op.hpp"

namespace cyb {

class Emit : public OpSink {
 public:
  /// Token ids of the run, i32 [rows].
  virtual Result<ValueId> ids() = 0;
  /// A tensor of the model by canonical name. Errors: MissingTensor.
  virtual Result<ValueId> weight(std::string_view name, WeightUse use) = 0;
  /// i32 [1]: T, the length of the whole sequence, however much of it a run holds.
  virtual Result<ValueId> length() = 0;
  /// The rows of x [rows, E] whose outputs the caller wants (a graph keeps all).
  virtual Result<ValueId> output_rows(ValueId x) = 0;
  /// Names a result of the forward ("logits").
  virtual Result<void> output(std::string_view name, ValueId value) = 0;
  /// Context of the steps that follow ("layer 3 attention"): errors, profiles, value names.
  virtual void label(std::string text) = 0;

  /// The single output of an op that has one.
  Result<ValueId> one(const Op& op, std::initializer_list<ValueId> inputs);
};

}  // namespace cyb
