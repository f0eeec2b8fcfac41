// FusedNormMatmul (tag 180): x [..., K], g [K], W [N, K] -> Matmul(RmsNorm(x, g), W).
// Payload: RmsNormAttrs.
#include <array>

#include "ops/emit_one.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_fused_norm_matmul(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(op_info(OpTag::kRmsNorm).infer(attrs, in.first(2)));
  CYB_TRY(rules::want_weight(in, 2));
  CYB_TRY(rules::want_rank(in, 2, 2));
  CYB_TRY(rules::want_dims(in, 2, std::vector<Dim>{in[2].dims[0], in[0].dims.back()}));
  return rules::one(in[0].dtype, rules::with_last(in[0], in[2].dims[0]));
}

Result<std::vector<ValueId>> decompose_fused_norm_matmul(const Attrs& attrs,
                                                         std::span<const ValueId> in,
                                                         OpSink& sink) {
  CYB_ASSIGN(const ValueId n, emit_one(sink, {OpTag::kRmsNorm, attrs}, {in[0], in[1]}));
  CYB_ASSIGN(const ValueId y, emit_one(sink, {OpTag::kMatmul, {}}, {n, in[2]}));
  return std::vector{y};
}

bool encoded(const Attrs&, std::size_t input) {
  return input == 2;
}

}  // namespace

OpImpl impl_FusedNormMatmul() {
  return {.attrs = kAttrs,
          .infer = infer_fused_norm_matmul,
          .decompose = decompose_fused_norm_matmul,
          .encoded_input = encoded};
}

}  // namespace cyb
