// Where a branch goes: after Matmul and BlockLinearAdd (a sum goes on), after each product of
// BlockNormLinear, before the activation of BlockGatedMlp, after TokenEmbed.
#include "paths/lora_emit.hpp"

#include <algorithm>

#include "ops/blocks.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb {

Op lora_op(const LoraTerm& term) {
  // alpha = rank: the scale is in B.
  return {OpTag::kLoraApply, Attrs{{std::int64_t{term.rank}, static_cast<float>(term.rank)}}};
}

const LoraTerm* LoraEmit::term(ValueId weight) const noexcept {
  const auto it = weights_.find(weight);
  return it == weights_.end() ? nullptr : it->second;
}

Result<ValueId> LoraEmit::weight(std::string_view name, WeightUse use) {
  CYB_ASSIGN(const ValueId value, to_.weight(name, use));
  const LoraPlace place = use == WeightUse::kGather ? LoraPlace::kEmbedding : LoraPlace::kProduct;
  if (const LoraTerm* found = terms_.find(name, place)) weights_.emplace(value, found);
  return value;
}

Result<ValueId> LoraEmit::with_branch(ValueId y, ValueId x, const LoraTerm& term) {
  used_.insert(&term);
  CYB_ASSIGN(const ValueId a, to_.weight(term.a, WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId b, to_.weight(term.b, WeightUse::kMatmul));
  return to_.one(lora_op(term), {y, x, a, b});
}

// The norm is computed once more, for the branches.
Result<std::vector<ValueId>> LoraEmit::norm_linear(const Op& op, std::span<const ValueId> inputs) {
  const auto attrs = BlockNormLinearAttrs::from(op.attrs);
  CYB_ASSIGN(std::vector<ValueId> out, to_.emit(op, inputs));
  CYB_ASSIGN(const ValueId n, to_.one(Op{OpTag::kRmsNorm, RmsNormAttrs{attrs.eps}.to_attrs()},
                                      {inputs[0], inputs[1]}));
  for (std::uint32_t i = 0; i < attrs.n_weights; ++i) {
    const LoraTerm* found = term(inputs[2 + i]);
    if (found == nullptr) continue;
    CYB_ASSIGN(out[i], with_branch(out[i], n, *found));
  }
  return out;
}

Result<std::vector<ValueId>> LoraEmit::gated_mlp(const Op& op, std::span<const ValueId> inputs) {
  const auto attrs = BlockGatedMlpAttrs::from(op.attrs);
  const Op products{OpTag::kBlockNormLinear,
                    BlockNormLinearAttrs{.eps = attrs.eps, .n_weights = 2}.to_attrs()};
  const ValueId both[] = {inputs[0], inputs[1], inputs[2], inputs[3], kNoValue, kNoValue};
  CYB_ASSIGN(const std::vector<ValueId> h, norm_linear(products, both));
  CYB_ASSIGN(const ValueId act, to_.one(activation_op(attrs.activation), {h[0]}));
  CYB_ASSIGN(const ValueId y, to_.one(Op{OpTag::kMul, {}}, {act, h[1]}));
  return std::vector{y};
}

// E[ids] + (A^T)[ids] B^T.
Result<ValueId> LoraEmit::embedding(const Op& op, std::span<const ValueId> inputs,
                                    const LoraTerm& term) {
  used_.insert(&term);
  CYB_ASSIGN(const std::vector<ValueId> y, to_.emit(op, inputs));
  CYB_ASSIGN(const ValueId a, to_.weight(term.a, WeightUse::kGather));
  CYB_ASSIGN(const ValueId b, to_.weight(term.b, WeightUse::kMatmul));
  CYB_ASSIGN(const ValueId low, to_.one(Op{OpTag::kTokenEmbed, {}}, {inputs[0], a}));
  CYB_ASSIGN(const ValueId branch, to_.one(Op{OpTag::kMatmul, {}}, {low, b}));
  return to_.one(Op{OpTag::kAdd, {}}, {y[0], branch});
}

Result<std::vector<ValueId>> LoraEmit::emit(const Op& op, std::span<const ValueId> inputs) {
  const auto adapted =
      std::ranges::find_if(inputs, [this](ValueId value) { return term(value) != nullptr; });
  if (adapted == inputs.end()) return to_.emit(op, inputs);
  const LoraTerm& found = *term(*adapted);
  const auto at = adapted - inputs.begin();
  switch (op.tag) {
    case OpTag::kMatmul:
    case OpTag::kBlockLinearAdd: {
      if (at != (op.tag == OpTag::kMatmul ? 1 : 2)) break;
      CYB_ASSIGN(const std::vector<ValueId> y, to_.emit(op, inputs));
      CYB_ASSIGN(const ValueId sum, with_branch(y[0], inputs[0], found));
      return std::vector{sum};
    }
    case OpTag::kTokenEmbed: {
      if (at != 1 || found.place != LoraPlace::kEmbedding) break;
      CYB_ASSIGN(const ValueId sum, embedding(op, inputs, found));
      return std::vector{sum};
    }
    case OpTag::kBlockNormLinear:
      return norm_linear(op, inputs);
    case OpTag::kBlockGatedMlp:
      return gated_mlp(op, inputs);
    default:
      if (op_info(op.tag).fused) return decompose(op, inputs, *this);
  }
  return fail(lora_unused(found, "Op::" + std::string(op_info(op.tag).name) +
                                     " reads it, which "
                                     "takes no adapter"));
}

Result<void> LoraEmit::check_all_used() const {
  for (const LoraTerm& term : terms_.all()) {
    if (!used_.contains(&term)) return fail(lora_unused(term, "no step of the model reads it so"));
  }
  return {};
}

}  // namespace cyb
