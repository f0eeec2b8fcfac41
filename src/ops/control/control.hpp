// If (tag 450) and Loop (tag 451): ops whose bodies are graphs of their own. A body is stored in
// the payload as a whole graph; whoever runs the op decodes it. What crosses the border is
// explicit: a body reads its inputs and the weights of the model, nothing else.
#pragma once

#include "ops/op.hpp"

namespace cyb {

constexpr bool is_control(OpTag tag) noexcept {
  return tag == OpTag::kIf || tag == OpTag::kLoop;
}

/// Indices of the attributes that are bodies; empty for every op but If and Loop.
std::span<const std::size_t> body_attrs(OpTag tag) noexcept;

/// The field `outputs` of If and Loop: dtype, rank and dimensions of each; a dimension that is no
/// constant is -1.
std::vector<std::int64_t> declared_outputs(std::span<const TensorSpec> specs);

/// The same read again: a dimension that is -1 is anonymous. Error: G04.
Result<std::vector<TensorSpec>> declared_specs(const Attrs& attrs);

/// What each body is given and must give: inputs with these specs, in this order;
/// outputs with these dtypes and ranks. `inputs`: of the node; `outputs`: as infer() says.
struct BodyTypes {
  std::vector<TensorSpec> inputs, outputs;
};
BodyTypes body_types(const Op& op, std::span<const TensorSpec> inputs,
                     std::span<const TensorSpec> outputs);

}  // namespace cyb
