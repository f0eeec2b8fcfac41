// FusedSkipNorm (tag 181): x, skip, g [D] -> n = RmsNorm(s, g), s = x + skip. Payload:
// RmsNormAttrs.
#include <array>

#include "ops/emit_one.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_fused_skip_norm(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_dims(in, 1, in[0].dims));
  CYB_ASSIGN(std::vector<TensorSpec> n,
             op_info(OpTag::kRmsNorm).infer(attrs, std::vector{in[0], in[2]}));
  n.push_back(n[0]);
  return n;
}

Result<std::vector<ValueId>> decompose_fused_skip_norm(const Attrs& attrs,
                                                       std::span<const ValueId> in, OpSink& sink) {
  CYB_ASSIGN(const ValueId s, emit_one(sink, {OpTag::kAdd, {}}, {in[0], in[1]}));
  CYB_ASSIGN(const ValueId n, emit_one(sink, {OpTag::kRmsNorm, attrs}, {s, in[2]}));
  return std::vector{n, s};
}

}  // namespace

OpImpl impl_FusedSkipNorm() {
  return {.attrs = kAttrs, .infer = infer_fused_skip_norm, .decompose = decompose_fused_skip_norm};
}

}  // namespace cyb
