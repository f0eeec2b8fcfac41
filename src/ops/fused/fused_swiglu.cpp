// FusedSwiGlu (tag 182): x [..., K], Wg, Wu [F, K] -> Silu(x Wg^T) · (x Wu^T).
#include "ops/emit_one.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

Result<std::vector<TensorSpec>> infer_fused_swiglu(const Attrs& attrs, rules::Specs in) {
  return op_info(OpTag::kSwiGlu).infer(attrs, in);
}

Result<std::vector<ValueId>> decompose_fused_swiglu(const Attrs&, std::span<const ValueId> in,
                                                    OpSink& sink) {
  CYB_ASSIGN(const ValueId g, emit_one(sink, {OpTag::kMatmul, {}}, {in[0], in[1]}));
  CYB_ASSIGN(const ValueId u, emit_one(sink, {OpTag::kMatmul, {}}, {in[0], in[2]}));
  CYB_ASSIGN(const ValueId a, emit_one(sink, {OpTag::kSilu, {}}, {g}));
  CYB_ASSIGN(const ValueId y, emit_one(sink, {OpTag::kMul, {}}, {a, u}));
  return std::vector{y};
}

bool encoded(const Attrs&, std::size_t input) {
  return input >= 1;
}

}  // namespace

OpImpl impl_FusedSwiGlu() {
  return {
      .infer = infer_fused_swiglu, .decompose = decompose_fused_swiglu, .encoded_input = encoded};
}

}  // namespace cyb
