// What has a kernel here: the one list that `supports` answers from and that compiling follows.
#include <algorithm>

#include "backends/cpu/step.hpp"
#include "ops/attention/sdpa.hpp"
#include "ops/blocks.hpp"

namespace cyb::cpu {
namespace {

using Specs = std::span<const TensorSpec>;

bool present(Specs in, std::size_t k) {
  return k < in.size() && !in[k].absent;
}
bool is_f32(Specs in, std::size_t k) {
  return k < in.size() && !in[k].absent && in[k].dtype == DType::kF32;
}
bool f32_or_absent(Specs in, std::size_t k) {
  return !present(in, k) || in[k].dtype == DType::kF32;
}

bool all_f32(Specs in) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!f32_or_absent(in, k)) return false;
  }
  return is_f32(in, 0);
}

/// A matrix [out, in] that panels can hold.
bool is_matrix(Specs in, std::size_t k) {
  if (!present(in, k) || in[k].rank() != 2 || !in[k].dims[0].is_constant() ||
      !in[k].dims[1].is_constant())
    return false;
  const auto format = panel_format(in[k].dtype);
  return format &&
         in[k].dims[1].constant() % static_cast<std::int64_t>(panel_block_values(*format)) == 0;
}

bool linear(Specs in, std::size_t first_matrix, std::size_t n_matrices) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    const bool matrix = k >= first_matrix && k < first_matrix + n_matrices;
    if (matrix ? !is_matrix(in, k) : !f32_or_absent(in, k)) return false;
  }
  return is_f32(in, 0) && in[0].rank() >= 1;
}

/// y, x, and A and B in f32.
bool lora(Specs in) {
  return in.size() == 4 && is_f32(in, 0) && is_f32(in, 1) && is_f32(in, 2) && is_f32(in, 3) &&
         is_matrix(in, 2) && is_matrix(in, 3);
}

bool norm(Specs in) {
  return all_f32(in) && in[0].rank() >= 1;
}

bool two_f32(Specs in) {
  return in.size() == 2 && is_f32(in, 0) && is_f32(in, 1);
}

bool same_dtype(Specs in) {
  return std::ranges::all_of(in, [&](const TensorSpec& s) {
    return !s.absent && s.dtype == in[0].dtype && format_info(s.dtype).block_values == 1;
  });
}

bool attention(const Op& op, Specs in) {
  const auto a = BlockAttentionAttrs::from(op.attrs);
  constexpr std::size_t kLength = 6;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (k != kLength && !f32_or_absent(in, k)) return false;
  }
  return is_f32(in, 0) && a.n_kv_heads != 0 && a.head_dim != 0 && a.n_heads % a.n_kv_heads == 0 &&
         a.rope_style <= 2;
}

bool sdpa(Specs in) {
  return in.size() >= 3 && all_f32(in) && !present(in, 3) && in[0].rank() == 4 &&
         in[1].rank() == 4 && in[2].rank() == 4 && in[1].dims[3] == in[2].dims[3] &&
         in[0].dims[3] == in[1].dims[3] && in[0].dims[1].is_constant() &&
         in[1].dims[1].is_constant();
}

bool embed(Specs in) {
  return in.size() == 2 && in[0].dtype == DType::kI32 && in[1].rank() == 2 &&
         format_info(in[1].dtype).decode != nullptr;
}

bool gather(const Op& op, Specs in) {
  return in.size() == 2 && is_f32(in, 0) && in[1].dtype == DType::kI32 && op.attrs.i(0) == 0 &&
         in[0].rank() == 2;
}

bool conv(Specs in) {
  if (!all_f32(in) || in.size() < 2 || in[0].rank() < 3 || in[0].rank() > 5) return false;
  return std::ranges::all_of(in[1].dims, [](const Dim& d) { return d.is_constant(); });
}

/// The usual functions, no clip, no lengths, no peepholes, gates that do not depend on each other.
bool recurrent(const Op& op, Specs in) {
  const Attrs& a = op.attrs;
  if (in.size() < 3 || !all_f32(in)) return false;
  if (op.tag == OpTag::kLstm) return true;
  const bool lstm = op.tag == OpTag::kLstmFull;
  if (present(in, 4) || (lstm && (present(in, 7) || a.i(6) != 0))) return false;
  return a.list(2).empty() && a.f(4) == 0.0f;
}

}  // namespace

bool has_kernel(const Op& op, Specs in) {
  switch (op.tag) {
    case OpTag::kMatmul:
      return in.size() >= 2 && linear(in, 1, 1);
    case OpTag::kBlockNormLinear:
      return linear(in, 2, BlockNormLinearAttrs::from(op.attrs).n_weights);
    case OpTag::kBlockLinearAdd:
      return linear(in, 2, 1);
    case OpTag::kBlockGatedMlp:
      return linear(in, 2, 2);
    case OpTag::kFusedNormMatmul:
      return linear(in, 2, 1);
    case OpTag::kFusedSwiGlu:
      return linear(in, 1, 2);
    case OpTag::kLoraApply:
      return lora(in);
    case OpTag::kBlockAttention:
      return attention(op, in);
    case OpTag::kRmsNorm:
    case OpTag::kBlockNormAdd:
      return norm(in);
    case OpTag::kAdd:
    case OpTag::kSub:
    case OpTag::kMul:
    case OpTag::kBatchMatmul:
      return two_f32(in);
    case OpTag::kConcat:
    case OpTag::kSplit:
      return same_dtype(in);
    case OpTag::kSilu:
    case OpTag::kGelu:
    case OpTag::kRelu:
    case OpTag::kSigmoid:
    case OpTag::kTanh:
    case OpTag::kReshape:
    case OpTag::kBlockSoftcap:
      return all_f32(in);
    case OpTag::kTranspose:
    case OpTag::kPermute:
      return all_f32(in) && in[0].rank() >= 2;
    case OpTag::kTokenEmbed:
      return embed(in);
    case OpTag::kGather:
      return gather(op, in);
    case OpTag::kKvCache:
      return all_f32(in) && in.size() == 2 && in[0].rank() == 4 && in[0].dims[3] == in[1].dims[3];
    case OpTag::kSdpa:
    case OpTag::kFlashAttention:
      return sdpa(in);
    case OpTag::kConv:
      return conv(in);
    case OpTag::kPow:
    case OpTag::kDiv:
      return two_f32(in);
    case OpTag::kErf:
    case OpTag::kExp:
    case OpTag::kSqrt:
    case OpTag::kReciprocal:
    case OpTag::kHardSwish:
    case OpTag::kHardSigmoid:
    case OpTag::kLeakyRelu:
    case OpTag::kClamp:
    case OpTag::kClip:
    case OpTag::kBatchNorm:
    case OpTag::kGroupNorm:
    case OpTag::kInstanceNorm:
      return all_f32(in);
    case OpTag::kLayerNorm:
      return norm(in);
    case OpTag::kSoftmax:
      return is_f32(in, 0) && in[0].rank() >= 1;
    case OpTag::kReduceSum:
    case OpTag::kReduceMean:
    case OpTag::kResize:
      return is_f32(in, 0);
    case OpTag::kReduce:  // sum, mean
      return is_f32(in, 0) && op.attrs.i(0) <= 1;
    case OpTag::kAvgPool:
      return is_f32(in, 0);
    case OpTag::kLstm:
    case OpTag::kLstmFull:
    case OpTag::kGru:
      return recurrent(op, in);
    case OpTag::kDynamicLstm:
      return in.size() >= 7 && is_f32(in, 0);
    case OpTag::kMaxPool:  // indices in row-major order
      return is_f32(in, 0) && op.attrs.i(6) == 0;
    case OpTag::kPadBy:  // constant, edge
      return is_f32(in, 0) && (op.attrs.i(0) == 0 || op.attrs.i(0) == 2);
    case OpTag::kConvTranspose:  // explicit pads, no output_shape
      return all_f32(in) && in[0].rank() >= 3 && in[0].rank() <= 5 && op.attrs.i(6) == 0 &&
             op.attrs.list(4).empty();
    case OpTag::kMatmulInteger:
    case OpTag::kConvInteger:
    case OpTag::kQuantizeLinear:
    case OpTag::kDequantizeLinear:
      return in.size() >= 2;
    case OpTag::kDynamicQuantizeLinear:
      return is_f32(in, 0);
    case OpTag::kRope:
      return is_f32(in, 0) && in[0].rank() == 4 && f32_or_absent(in, 2);
    default:
      return false;
  }
}

}  // namespace cyb::cpu
