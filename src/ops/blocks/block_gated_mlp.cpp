// BlockGatedMlp (tag 483): n = RmsNorm(x, g); y = act(n Wg^T)·(n Wu^T).
#include <array>

#include "ops/activation/gelu.hpp"
#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

BlockGatedMlpAttrs BlockGatedMlpAttrs::from(const Attrs& a) {
  return {a.f(0), static_cast<Activation>(a.i(1))};
}
Attrs BlockGatedMlpAttrs::to_attrs() const {
  return {{eps, static_cast<std::int64_t>(activation)}};
}

Op activation_op(Activation activation) {
  switch (activation) {
    case Activation::kGeluErf:
      return {OpTag::kGelu, GeluAttrs{GeluMode::kErf}.to_attrs()};
    case Activation::kGeluTanh:
      return {OpTag::kGelu, GeluAttrs{GeluMode::kTanh}.to_attrs()};
    case Activation::kGeluQuick:
      return {OpTag::kGelu, GeluAttrs{GeluMode::kQuick}.to_attrs()};
    case Activation::kRelu:
      return {OpTag::kRelu, {}};
    default:
      return {OpTag::kSilu, {}};
  }
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32},
                               AttrSpec{"activation", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_block_gated_mlp(const Attrs& attrs, rules::Specs in) {
  if (attrs.i(1) > static_cast<std::int64_t>(Activation::kRelu)) {
    return fail(rules::bad_payload("activation"));
  }
  const Attrs norm = RmsNormAttrs{attrs.f(0)}.to_attrs();
  CYB_TRY(op_info(OpTag::kRmsNorm).infer(norm, in.first(2)));
  for (std::size_t k = 2; k < 4; ++k) {
    CYB_TRY(rules::want_weight(in, k));
    CYB_TRY(rules::want_rank(in, k, 2));
    CYB_TRY(rules::want_dims(in, k, std::vector<Dim>{in[2].dims[0], in[0].dims.back()}));
  }
  return rules::one(in[0].dtype, rules::with_last(in[0], in[2].dims[0]));
}

Result<std::vector<ValueId>> decompose_block_gated_mlp(const Attrs& attrs,
                                                       std::span<const ValueId> in, OpSink& sink) {
  const auto a = BlockGatedMlpAttrs::from(attrs);
  const Op norm{OpTag::kRmsNorm, RmsNormAttrs{a.eps}.to_attrs()};
  CYB_ASSIGN(const ValueId n, emit_one(sink, norm, {in[0], in[1]}));
  CYB_ASSIGN(const ValueId g, emit_one(sink, {OpTag::kMatmul, {}}, {n, in[2]}));
  CYB_ASSIGN(const ValueId u, emit_one(sink, {OpTag::kMatmul, {}}, {n, in[3]}));
  CYB_ASSIGN(const ValueId act, emit_one(sink, activation_op(a.activation), {g}));
  CYB_ASSIGN(const ValueId y, emit_one(sink, {OpTag::kMul, {}}, {act, u}));
  return std::vector{y};
}

bool encoded(const Attrs&, std::size_t input) {
  return input >= 2;
}

}  // namespace

OpImpl impl_BlockGatedMlp() {
  return {.attrs = kAttrs,
          .infer = infer_block_gated_mlp,
          .decompose = decompose_block_gated_mlp,
          .encoded_input = encoded};
}

}  // namespace cyb
