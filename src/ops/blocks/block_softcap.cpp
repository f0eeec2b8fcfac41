// BlockSoftcap (tag 485): y = cap·tanh(x·(1/cap)).
#include <array>
#include <cmath>

#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

BlockSoftcapAttrs BlockSoftcapAttrs::from(const Attrs& a) {
  return {a.f(0)};
}
Attrs BlockSoftcapAttrs::to_attrs() const {
  return {{cap}};
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"cap", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_block_softcap(const Attrs& attrs, rules::Specs in) {
  const float cap = attrs.f(0);
  if (!std::isfinite(cap) || cap <= 0.0F) return fail(rules::bad_payload("cap"));
  return rules::same_float(attrs, in);
}

Result<std::vector<ValueId>> decompose_block_softcap(const Attrs& attrs,
                                                     std::span<const ValueId> in, OpSink& sink) {
  const float cap = attrs.f(0);
  CYB_ASSIGN(const ValueId inverse, sink.constant(std::array{1.0F / cap}, Shape{1}));
  CYB_ASSIGN(const ValueId factor, sink.constant(std::array{cap}, Shape{1}));
  CYB_ASSIGN(ValueId y, emit_one(sink, {OpTag::kMul, {}}, {in[0], inverse}));
  CYB_ASSIGN(y, emit_one(sink, {OpTag::kTanh, {}}, {y}));
  CYB_ASSIGN(y, emit_one(sink, {OpTag::kMul, {}}, {y, factor}));
  return std::vector{y};
}

}  // namespace

OpImpl impl_BlockSoftcap() {
  return {.attrs = kAttrs, .infer = infer_block_softcap, .decompose = decompose_block_softcap};
}

}  // namespace cyb
