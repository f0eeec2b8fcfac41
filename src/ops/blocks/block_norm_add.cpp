// BlockNormAdd (tag 484): y = x + RmsNorm(z, g).
#include <array>

#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

BlockNormAddAttrs BlockNormAddAttrs::from(const Attrs& a) {
  return {a.f(0)};
}
Attrs BlockNormAddAttrs::to_attrs() const {
  return {{eps}};
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_block_norm_add(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_dims(in, 1, in[0].dims));
  return op_info(OpTag::kRmsNorm).infer(attrs, std::vector{in[0], in[2]});
}

Result<std::vector<ValueId>> decompose_block_norm_add(const Attrs& attrs,
                                                      std::span<const ValueId> in, OpSink& sink) {
  CYB_ASSIGN(const ValueId n, emit_one(sink, {OpTag::kRmsNorm, attrs}, {in[1], in[2]}));
  CYB_ASSIGN(const ValueId y, emit_one(sink, {OpTag::kAdd, {}}, {in[0], n}));
  return std::vector{y};
}

}  // namespace

OpImpl impl_BlockNormAdd() {
  return {.attrs = kAttrs, .infer = infer_block_norm_add, .decompose = decompose_block_norm_add};
}

}  // namespace cyb
