// BlockLinearAdd (tag 482): y = residual + (x W^T (+ b)).
#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::size_t kResidual = 1, kWeight = 2, kBias = 3;

Result<std::vector<TensorSpec>> infer_block_linear_add(const Attrs&, rules::Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_weight(in, kWeight));
  CYB_TRY(rules::want_rank(in, kWeight, 2));
  const Dim& out = in[kWeight].dims[0];
  CYB_TRY(rules::want_dims(in, kWeight, std::vector<Dim>{out, in[0].dims.back()}));
  CYB_TRY(rules::want_dtype(in, kResidual, in[0].dtype));
  CYB_TRY(rules::want_dims(in, kResidual, rules::with_last(in[0], out)));
  if (!rules::at(in, kBias).absent) {
    CYB_TRY(rules::want_parameter(in, kBias));
    CYB_TRY(rules::want_dims(in, kBias, std::span(&out, 1)));
  }
  return rules::one(in[0].dtype, in[kResidual].dims);
}

Result<std::vector<ValueId>> decompose_block_linear_add(const Attrs&, std::span<const ValueId> in,
                                                        OpSink& sink) {
  CYB_ASSIGN(ValueId y, emit_one(sink, {OpTag::kMatmul, {}}, {in[0], in[kWeight]}));
  const ValueId bias = value_at(in, kBias);
  if (bias != kNoValue) {
    CYB_ASSIGN(y, emit_one(sink, {OpTag::kAdd, {}}, {y, bias}));
  }
  CYB_ASSIGN(y, emit_one(sink, {OpTag::kAdd, {}}, {in[kResidual], y}));
  return std::vector{y};
}

bool encoded(const Attrs&, std::size_t input) {
  return input == kWeight;
}

}  // namespace

OpImpl impl_BlockLinearAdd() {
  return {.infer = infer_block_linear_add,
          .decompose = decompose_block_linear_add,
          .encoded_input = encoded};
}

}  // namespace cyb
