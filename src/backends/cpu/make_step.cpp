// Which step runs an op.
#include "backends/cpu/layout.hpp"
#include "backends/cpu/layout_steps.hpp"
#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {
namespace {

std::vector<TensorSpec> specs_of(const Step& step) {
  std::vector<TensorSpec> specs;
  for (const Operand& in : step.inputs) {
    specs.push_back(in.kind == Operand::Kind::kNone ? TensorSpec::none()
                                                    : TensorSpec::of(in.dtype, in.shape));
  }
  return specs;
}

/// True where the run's checks cover the indices: those of data are left to the reference, which
/// looks at each.
bool checked_indices(const Operand& indices) {
  return indices.kind == Operand::Kind::kIds || indices.kind == Operand::Kind::kOutputRows;
}

/// b has the shape of a, one value, or is a's trailing dimensions: the case of ragged rows too.
bool repeats_rows(const Step& step) {
  const Shape &a = step.inputs[0].shape, &b = step.inputs[1].shape;
  if (b.rank() > a.rank()) return false;
  if (b.count() == 1) return true;
  for (std::size_t i = 0; i < b.rank(); ++i) {
    if (a[a.rank() - b.rank() + i] != b[i]) return false;
  }
  return true;
}

/// Null: no kernel for exactly these operands.
Result<StepPtr> make_plain_step(const Step& step, Build& build) {
  if (!has_kernel(step.op, specs_of(step))) return StepPtr();
  switch (step.op.tag) {
    case OpTag::kMatmul:
      if (step.inputs[1].kind != Operand::Kind::kWeight ||
          !cpu_weight(step.inputs[1])->has_panels())
        return StepPtr();
      return make_linear_step(step, build);
    case OpTag::kBlockNormLinear:
    case OpTag::kBlockLinearAdd:
    case OpTag::kBlockGatedMlp:
    case OpTag::kFusedNormMatmul:
    case OpTag::kFusedSwiGlu:
      return make_linear_step(step, build);
    case OpTag::kLoraApply:
      return make_lora_step(step, build);
    case OpTag::kBlockAttention:
      return make_attention_step(step, build);
    case OpTag::kKvCache:
    case OpTag::kSdpa:
    case OpTag::kFlashAttention:
    case OpTag::kRope:
    case OpTag::kTranspose:
    case OpTag::kPermute:
      return make_graph_step(step, build);
    case OpTag::kTokenEmbed:
      return checked_indices(step.inputs[0]) ? make_row_step(step, build) : StepPtr();
    case OpTag::kGather:
      return checked_indices(step.inputs[1]) ? make_row_step(step, build) : StepPtr();
    case OpTag::kConv:
      return make_conv_step(step, build);
    case OpTag::kBatchMatmul:
      return make_product_step(step, build);
    case OpTag::kConvTranspose:
      return make_transposed_step(step, build);
    case OpTag::kErf:
    case OpTag::kExp:
    case OpTag::kSqrt:
    case OpTag::kReciprocal:
    case OpTag::kHardSwish:
    case OpTag::kHardSigmoid:
    case OpTag::kLeakyRelu:
    case OpTag::kClamp:
    case OpTag::kClip:
    case OpTag::kPow:
    case OpTag::kDiv:
      return make_element_step(step, build);
    case OpTag::kBatchNorm:
    case OpTag::kLayerNorm:
    case OpTag::kGroupNorm:
    case OpTag::kInstanceNorm:
    case OpTag::kSoftmax:
    case OpTag::kReduceSum:
    case OpTag::kReduceMean:
    case OpTag::kReduce:
      return make_norm_step(step, build);
    case OpTag::kMaxPool:
    case OpTag::kAvgPool:
    case OpTag::kResize:
    case OpTag::kPadBy:
      return make_spatial_step(step, build);
    case OpTag::kConvInteger:
      return make_integer_conv(step, build);
    case OpTag::kMatmulInteger:
    case OpTag::kQuantizeLinear:
    case OpTag::kDequantizeLinear:
    case OpTag::kDynamicQuantizeLinear:
      return make_integer_step(step, build);
    case OpTag::kLstm:
    case OpTag::kLstmFull:
    case OpTag::kGru:
      return make_recurrent_step(step, build);
    case OpTag::kDynamicLstm:
      return make_dynamic_lstm(step, build);
    case OpTag::kConcat:
    case OpTag::kSplit:
      return make_layout_step(step);
    case OpTag::kAdd:
    case OpTag::kSub:
    case OpTag::kMul:
      return repeats_rows(step) ? make_row_step(step, build) : make_layout_step(step);
    default:
      return make_row_step(step, build);
  }
}

bool is_convolution(OpTag tag) {
  return tag == OpTag::kConv || tag == OpTag::kConvTranspose;
}

/// With channels last. Steps whose shapes are those of the memory need not know its order, but for
/// windows.
Result<StepPtr> make_last_step(const Step& step, Build& build) {
  if (step.op.tag == OpTag::kConv) return make_direct_step(step, build);
  if (step.op.tag == OpTag::kConvTranspose) return make_windows_step(step, build);
  return is_pixel_op(step.op.tag) ? make_pixel_step(step, build) : make_plain_step(step, build);
}

}  // namespace

bool does_fused_ops(const Step& step, bool channels_last, const Build& build) {
  return is_direct_product(step, build) || (channels_last && is_convolution(step.op.tag));
}

Result<StepPtr> make_step(const Step& step, bool channels_last, Build& build) {
  if (is_direct_product(step, build)) return make_direct_product(step, build);
  return channels_last ? make_last_step(step, build) : make_plain_step(step, build);
}

}  // namespace cyb::cpu
