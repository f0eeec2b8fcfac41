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
/// MaxPool, AvgPool, Resize (nearest and linear), PadBy with a constant.
Result<StepPtr> make_spatial_step(const Step& step, Build& build);
/// MatmulInteger with a stored b, QuantizeLinear and DequantizeLinear of bytes with one scale,
/// DynamicQuantizeLinear.
Result<StepPtr> make_integer_step(const Step& step, Build& build);
/// ConvInteger with stored weights.
Result<StepPtr> make_integer_conv(const Step& step, Build& build);
/// LstmFull, Lstm and Gru with the usual functions and stored weights.
Result<StepPtr> make_recurrent_step(const Step& step, Build& build);
/// DynamicLstm with stored weights.
Result<StepPtr> make_dynamic_lstm(const Step& step, Build& build);

/// A stored matrix [k, n] of bytes; `zero`: null, one, or one a column.
struct ByteMatrix {
  const std::byte* data;
  DType dtype;
  std::size_t k, n;
  const std::byte* zero;
  bool zero_per_column;
};
inline constexpr std::size_t kPairColumns = 16;
/// [block of 16 columns][pair of k][16] of a matrix less its zero points, two int16 a word: `b` of
/// a PairsJob.
Result<Buffer> pair_panels(const ByteMatrix& b);
/// The bytes of a weight as the model stores it; null where the operand is something else.
const std::byte* stored_bytes(const Operand& operand);
inline std::int32_t byte_at(const std::byte* data, DType dtype, std::size_t i) noexcept {
  const auto raw = static_cast<std::uint8_t>(data[i]);
  return dtype == DType::kI8 ? static_cast<std::int8_t>(raw) : raw;
}

/// [group][block of 16 outputs][tap][channel][16] of a weight [groups * outputs, channels, taps].
/// What CpuWeight::Derived::kDirect names, but for depthwise ones.
Result<Buffer> direct_panels(const float* w, const conv::Problem& p);

/// ConvTranspose of 1 to 3 axes.
Result<StepPtr> make_transposed_step(const Step& step, Build& build);

}  // namespace cyb::cpu
