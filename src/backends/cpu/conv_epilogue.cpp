// Folding of fused ops into a scale and a bias per channel.
#include "backends/cpu/conv_epilogue.hpp"

#include <algorithm>
#include <cmath>

namespace cyb::cpu {
namespace {

/// Fused op 0 is the only one that reads the step's own result.
bool only_first_reads_own(const Step& step) {
  const auto reads_own = [](const FusedOp& op) {
    return std::ranges::count_if(
        op.inputs, [](const FusedInput& in) { return in.is_result && in.index == 0; });
  };
  if (reads_own(step.fused[0]) != 1) return false;
  return std::ranges::none_of(step.fused.begin() + 1, step.fused.end(), reads_own);
}

/// Result of fused op 0 becomes the step's own.
void drop_first(Step& step) {
  step.fused.erase(step.fused.begin());
  for (FusedOp& op : step.fused) {
    for (FusedInput& in : op.inputs) {
      if (in.is_result && in.index > 0) --in.index;
    }
  }
}

/// Stored values, one a channel or one for all; null for other operands.
const float* per_channel(const Operand& operand, std::size_t channels) {
  if (operand.kind != Operand::Kind::kWeight || operand.dtype != DType::kF32) return nullptr;
  const auto n = static_cast<std::size_t>(operand.shape.count());
  const bool last = operand.shape.rank() > 0 &&
                    static_cast<std::size_t>(operand.shape.back()) == channels && n == channels;
  return n == 1 || last ? cpu_weight(operand)->vector() : nullptr;
}

bool finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(static_cast<float>(v)); });
}

std::vector<float> padded(const std::vector<double>& values) {
  std::vector<float> out(round_up(values.size(), kDirectOutputs) + kDirectOutputs, 0.0f);
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<float>(values[i]);
  return out;
}

}  // namespace

/// Stored statistics; what has one was looked at when the layouts were made.
void ConvEpilogue::fold_norm(const Step& step, std::vector<double>& scale,
                             std::vector<double>& bias) {
  const FusedOp& op = step.fused[0];
  const auto value = [&](std::size_t k, std::size_t c) {
    return static_cast<double>(cpu_weight(step.fused_inputs[op.inputs[k].index])->vector()[c]);
  };
  for (std::size_t c = 0; c < scale.size(); ++c) {
    const double s = value(1, c) / std::sqrt(value(4, c) + static_cast<double>(op.op.attrs.f(0)));
    scale[c] *= s;
    bias[c] = (bias[c] - value(3, c)) * s + value(2, c);
  }
}

/// True where fused op 0 went into scale and bias.
bool ConvEpilogue::fold(Step& step, std::vector<double>& scale, std::vector<double>& bias) {
  const FusedOp& op = step.fused[0];
  if (op.op.tag == OpTag::kBatchNorm) {
    fold_norm(step, scale, bias);
    return true;
  }
  if (op.inputs.size() != 2 || !only_first_reads_own(step)) return false;
  const std::size_t side = op.inputs[0].is_result ? 1 : 0;
  if (op.inputs[side].is_result) return false;
  const Operand& operand = step.fused_inputs[op.inputs[side].index];
  const float* values = per_channel(operand, scale.size());
  if (values == nullptr) return false;
  std::vector<double> s = scale, b = bias;
  for (std::size_t c = 0; c < s.size(); ++c) {
    const double v = values[operand.shape.count() == 1 ? 0 : c];
    switch (op.op.tag) {
      case OpTag::kAdd:
        b[c] += v;
        break;
      case OpTag::kSub:
        s[c] = side == 1 ? s[c] : -s[c];
        b[c] = side == 1 ? b[c] - v : v - b[c];
        break;
      case OpTag::kMul:
        s[c] *= v;
        b[c] *= v;
        break;
      case OpTag::kDiv:
        if (side == 0) return false;
        s[c] /= v;
        b[c] /= v;
        break;
      default:
        return false;
    }
  }
  if (!finite(s) || !finite(b)) return false;
  scale = std::move(s);
  bias = std::move(b);
  return true;
}

ConvEpilogue::ConvEpilogue(Step step, const float* bias, std::size_t channels) {
  std::vector<double> s(channels, 1.0), b(channels, 0.0);
  if (bias != nullptr) std::copy_n(bias, channels, b.begin());
  while (!step.fused.empty() && fold(step, s, b)) drop_first(step);
  const bool scaled = std::ranges::any_of(s, [](double v) { return v != 1.0; });
  const bool moved = std::ranges::any_of(b, [](double v) { return v != 0.0; });
  if (scaled) scale_ = padded(s);
  if (scaled || moved) bias_ = padded(b);
  if (!step.fused.empty() && step.fused[0].op.tag == OpTag::kRelu && only_first_reads_own(step)) {
    relu_ = true;
    drop_first(step);
  }
  has_kernels_ = std::ranges::none_of(
      step.fused, [](const FusedOp& op) { return op.op.tag == OpTag::kBatchNorm; });
  if (!step.fused.empty() && has_kernels_) ops_.emplace(step);
}

void ConvEpilogue::apply(const Run& run, std::byte* scratch, std::size_t first,
                         std::size_t n) const noexcept {
  for (; n > FusedOps::kBlock; first += FusedOps::kBlock, n -= FusedOps::kBlock)
    ops_->apply(run, scratch, first, FusedOps::kBlock);
  ops_->apply(run, scratch, first, n);
}

}  // namespace cyb::cpu
