// Makers of the steps that graphs alone need. Each gives null where its kernel does not cover the
// operands.
#pragma once

#include <optional>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

/// Erf, Exp, Sqrt, Reciprocal, LeakyRelu, HardSigmoid, HardSwish, Clamp, Clip, Pow with a constant
/// 2, Div.
Result<StepPtr> make_element_step(const Step& step, Build& build);
/// BatchNorm, GroupNorm, InstanceNorm, LayerNorm, Softmax, sums and means of trailing dimensions.
Result<StepPtr> make_norm_step(const Step& step, Build& build);
/// A sum or mean over axes that are known (none listed: all).
struct Reduction {
  std::vector<std::int64_t> axes;
  bool mean;
};
std::optional<Reduction> reduction_of(const Step& step);
/// MaxPool, Resize (nearest and linear), PadBy with a constant.
Result<StepPtr> make_spatial_step(const Step& step, Build& build);
/// MatmulInteger with a stored b, QuantizeLinear and DequantizeLinear of bytes with one scale,
/// DynamicQuantizeLinear.
Result<StepPtr> make_integer_step(const Step& step, Build& build);
/// ConvInteger with stored weights.
Result<StepPtr> make_integer_conv(const Step& step, Build& build);
/// ConvTranspose of 1 to 3 axes.
Result<StepPtr> make_transposed_step(const Step& step, Build& build);

}  // namespace cyb::cpu
