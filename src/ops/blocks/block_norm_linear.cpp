// BlockNormLinear (tag 480): n = RmsNorm(x, g); y_i = n W_i^T (+ b_i).
#include <array>

#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

BlockNormLinearAttrs BlockNormLinearAttrs::from(const Attrs& a) {
  return {a.f(0), a.u32(1)};
}
Attrs BlockNormLinearAttrs::to_attrs() const {
  return {{eps, std::int64_t{n_weights}}};
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32},
                               AttrSpec{"n_weights", AttrKind::kU32}};
constexpr std::uint32_t kMaxWeights = 6;

Result<std::vector<TensorSpec>> infer_block_norm_linear(const Attrs& attrs, rules::Specs in) {
  const auto a = BlockNormLinearAttrs::from(attrs);
  const std::size_t n = a.n_weights;
  if (n == 0 || n > kMaxWeights) return fail(rules::bad_payload("n_weights"));
  CYB_TRY(op_info(OpTag::kRmsNorm).infer(RmsNormAttrs{a.eps}.to_attrs(), in.first(2)));
  if (in.size() < 2 + n || in.size() > 2 + 2 * n) {
    return fail(rules::bad_count(in.size(), "x, g, the weights and their biases"));
  }
  std::vector<TensorSpec> outputs;
  for (std::size_t k = 2; k < 2 + n; ++k) {
    CYB_TRY(rules::want_weight(in, k));
    CYB_TRY(rules::want_rank(in, k, 2));
    const Dim& out = in[k].dims[0];
    CYB_TRY(rules::want_dims(in, k, std::vector<Dim>{out, in[0].dims.back()}));
    if (!rules::at(in, k + n).absent) {
      CYB_TRY(rules::want_parameter(in, k + n));
      CYB_TRY(rules::want_dims(in, k + n, std::span(&out, 1)));
    }
    outputs.push_back({in[0].dtype, rules::with_last(in[0], out)});
  }
  return outputs;
}

Result<std::vector<ValueId>> decompose_block_norm_linear(const Attrs& attrs,
                                                         std::span<const ValueId> in,
                                                         OpSink& sink) {
  const auto a = BlockNormLinearAttrs::from(attrs);
  const Op norm{OpTag::kRmsNorm, RmsNormAttrs{a.eps}.to_attrs()};
  CYB_ASSIGN(const ValueId n, emit_one(sink, norm, {in[0], in[1]}));
  std::vector<ValueId> outputs;
  for (std::size_t k = 0; k < a.n_weights; ++k) {
    CYB_ASSIGN(const ValueId y, emit_one(sink, {OpTag::kMatmul, {}}, {n, in[2 + k]}));
    outputs.push_back(y);
  }
  for (std::size_t k = 0; k < a.n_weights; ++k) {
    const ValueId bias = value_at(in, 2 + a.n_weights + k);
    if (bias == kNoValue) continue;
    CYB_ASSIGN(outputs[k], emit_one(sink, {OpTag::kAdd, {}}, {outputs[k], bias}));
  }
  return outputs;
}

bool encoded(const Attrs& attrs, std::size_t input) {
  return input >= 2 && input < 2 + std::size_t{attrs.u32(1)};
}

}  // namespace

OpImpl impl_BlockNormLinear() {
  return {.attrs = kAttrs,
          .infer = infer_block_norm_linear,
          .decompose = decompose_block_norm_linear,
          .encoded_input = encoded,
          .count = [](const Attrs& attrs) { return std::size_t{attrs.u32(1)}; }};
}

}  // namespace cyb
