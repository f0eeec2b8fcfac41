// BlockAttention (tag 481): per-head RmsNorm of q and k, Rope, cache write, causal attention over
// the cache. The decomposition takes positions from the sink; rows [N, ...] are one sequence, [B,
// S, ...] are B of them.
#include <array>
#include <cmath>

#include "ops/attention/kv_cache.hpp"
#include "ops/attention/rope.hpp"
#include "ops/attention/sdpa.hpp"
#include "ops/blocks.hpp"
#include "ops/emit_one.hpp"
#include "ops/layout/cast.hpp"
#include "ops/layout/permute.hpp"
#include "ops/layout/reshape.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

BlockAttentionAttrs BlockAttentionAttrs::from(const Attrs& a) {
  return {.layer = a.u32(0),
          .n_heads = a.u32(1),
          .n_kv_heads = a.u32(2),
          .head_dim = a.u32(3),
          .scale = a.f(4),
          .softcap = a.f(5),
          .window = a.u32(6),
          .rope_dim = a.u32(7),
          .rope_base = a.f(8),
          .rope_style = static_cast<std::uint8_t>(a.i(9)),
          .norm_eps = a.f(10),
          .rope_rule = static_cast<RopeRule>(a.i(11)),
          .rope_original = a.u32(12),
          .rope_factor = a.f(13)};
}
Attrs BlockAttentionAttrs::to_attrs() const {
  return {{std::int64_t{layer}, std::int64_t{n_heads}, std::int64_t{n_kv_heads},
           std::int64_t{head_dim}, scale, softcap, std::int64_t{window}, std::int64_t{rope_dim},
           rope_base, std::int64_t{rope_style}, norm_eps, static_cast<std::int64_t>(rope_rule),
           std::int64_t{rope_original}, rope_factor}};
}

namespace {

constexpr std::array kAttrs = {
    AttrSpec{"layer", AttrKind::kU32},         AttrSpec{"n_heads", AttrKind::kU32},
    AttrSpec{"n_kv_heads", AttrKind::kU32},    AttrSpec{"head_dim", AttrKind::kU32},
    AttrSpec{"scale", AttrKind::kF32},         AttrSpec{"softcap", AttrKind::kF32},
    AttrSpec{"window", AttrKind::kU32},        AttrSpec{"rope_dim", AttrKind::kU32},
    AttrSpec{"rope_base", AttrKind::kF32},     AttrSpec{"rope_style", AttrKind::kU8},
    AttrSpec{"norm_eps", AttrKind::kF32},      AttrSpec{"rope_rule", AttrKind::kU8},
    AttrSpec{"rope_original", AttrKind::kU32}, AttrSpec{"rope_factor", AttrKind::kF32}};

constexpr std::size_t kQGain = 3, kKGain = 4, kFreqs = 5, kLength = 6, kLongFreqs = 7;

Result<void> check_rope_rule(const BlockAttentionAttrs& a, rules::Specs in) {
  if (a.rope_rule == RopeRule::kFixed || a.rope_dim == 0) return {};
  if (a.rope_rule > RopeRule::kDynamic) return fail(rules::bad_payload("rope_rule"));
  if (a.rope_original == 0) return fail(rules::bad_payload("rope_original"));
  CYB_TRY(rules::want_dtype(in, kLength, DType::kI32));
  CYB_TRY(rules::want_dims(in, kLength, std::vector<Dim>{Dim(1)}));
  if (a.rope_rule == RopeRule::kDynamic) {
    const bool fits = std::isfinite(a.rope_factor) && a.rope_factor >= 1.0F && a.rope_dim >= 4;
    return fits ? Result<void>() : fail(rules::bad_payload("rope_factor"));
  }
  for (const std::size_t k : {kFreqs, kLongFreqs}) {
    CYB_TRY(rules::want_dtype(in, k, DType::kF32));
    CYB_TRY(rules::want_dims(in, k, std::vector<Dim>{Dim(a.rope_dim / 2)}));
  }
  return {};
}

Result<void> check_attrs(const BlockAttentionAttrs& a) {
  if (a.n_heads == 0) return fail(rules::bad_payload("n_heads"));
  if (a.n_kv_heads == 0 || a.n_heads % a.n_kv_heads != 0) {
    return fail(rules::bad_payload("n_kv_heads"));
  }
  if (a.head_dim == 0 || a.head_dim % 2 != 0) return fail(rules::bad_payload("head_dim"));
  if (!std::isfinite(a.scale) || a.scale <= 0.0F) return fail(rules::bad_payload("scale"));
  if (!std::isfinite(a.softcap) || a.softcap < 0.0F) return fail(rules::bad_payload("softcap"));
  if (a.rope_dim % 2 != 0 || a.rope_dim > a.head_dim) return fail(rules::bad_payload("rope_dim"));
  if (a.rope_style > 2) return fail(rules::bad_payload("rope_style"));
  if (!(a.norm_eps >= 0.0F)) return fail(rules::bad_payload("norm_eps"));
  return {};
}

Result<std::vector<TensorSpec>> infer_block_attention(const Attrs& attrs, rules::Specs in) {
  const auto a = BlockAttentionAttrs::from(attrs);
  CYB_TRY(check_attrs(a));
  CYB_TRY(check_rope_rule(a, in));
  CYB_TRY(rules::want_float(in, 0));
  if (in[0].rank() != 2 && in[0].rank() != 3) CYB_TRY(rules::want_rank(in, 0, 3));
  const Dim d(a.head_dim), q = d * a.n_heads, kv = d * a.n_kv_heads;
  CYB_TRY(rules::want_dims(in, 0, rules::with_last(in[0], q)));
  for (std::size_t k = 1; k < 3; ++k) {
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_TRY(rules::want_dims(in, k, rules::with_last(in[0], kv)));
  }
  for (const std::size_t k : {kQGain, kKGain}) {
    if (rules::at(in, k).absent) continue;
    CYB_TRY(rules::want_parameter(in, k));
    CYB_TRY(rules::want_dims(in, k, std::span(&d, 1)));
  }
  if (!rules::at(in, kFreqs).absent) {
    CYB_TRY(rules::want_dtype(in, kFreqs, DType::kF32));
    CYB_TRY(rules::want_dims(in, kFreqs, std::vector<Dim>{Dim(a.rope_dim / 2)}));
  } else if (a.rope_dim > 0 && (!std::isfinite(a.rope_base) || a.rope_base <= 0.0F)) {
    return fail(rules::bad_payload("rope_base"));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

Result<ValueId> permute_heads(OpSink& sink, ValueId x) {
  return emit_one(sink, {OpTag::kPermute, PermuteAttrs{{0, 2, 1, 3}}.to_attrs()}, {x});
}

/// x [rows, n·D] -> [B, n, S, D], normalised per head where a gain is given.
Result<ValueId> heads(OpSink& sink, const BlockAttentionAttrs& a, ValueId x, std::int64_t n,
                      ValueId gain) {
  const bool batched = sink.spec(x).rank() == 3;
  const ReshapeAttrs split{batched ? std::vector<std::int64_t>{0, 0, n, a.head_dim}
                                   : std::vector<std::int64_t>{1, -1, n, a.head_dim}};
  CYB_ASSIGN(ValueId h, emit_one(sink, {OpTag::kReshape, split.to_attrs()}, {x}));
  CYB_ASSIGN(h, permute_heads(sink, h));
  if (gain == kNoValue) return h;
  return emit_one(sink, {OpTag::kRmsNorm, RmsNormAttrs{a.norm_eps}.to_attrs()}, {h, gain});
}

/// T in f32 [1].
Result<ValueId> float_length(OpSink& sink, std::span<const ValueId> in) {
  return emit_one(sink, {OpTag::kCast, CastAttrs{DType::kF32}.to_attrs()}, {value_at(in, kLength)});
}

Result<ValueId> scalar(OpSink& sink, double value) {
  return sink.constant(std::array{static_cast<float>(value)}, Shape{1});
}

/// base^(-2j/R) with the base that T asks for.
Result<ValueId> dynamic_frequencies(OpSink& sink, const BlockAttentionAttrs& a,
                                    std::span<const ValueId> in) {
  const double factor = a.rope_factor, original = a.rope_original, r = a.rope_dim;
  CYB_ASSIGN(const ValueId given, float_length(sink, in));
  CYB_ASSIGN(const ValueId least, scalar(sink, original));
  CYB_ASSIGN(const ValueId t, emit_one(sink, {OpTag::kMax, {}}, {given, least}));
  CYB_ASSIGN(const ValueId slope, scalar(sink, factor / original));
  CYB_ASSIGN(const ValueId shift, scalar(sink, factor - 1));
  CYB_ASSIGN(const ValueId product, emit_one(sink, {OpTag::kMul, {}}, {t, slope}));
  CYB_ASSIGN(const ValueId growth, emit_one(sink, {OpTag::kSub, {}}, {product, shift}));
  CYB_ASSIGN(const ValueId power, scalar(sink, r / (r - 2)));
  CYB_ASSIGN(const ValueId grown, emit_one(sink, {OpTag::kPow, {}}, {growth, power}));
  CYB_ASSIGN(const ValueId theta, scalar(sink, double{a.rope_base}));
  CYB_ASSIGN(const ValueId base, emit_one(sink, {OpTag::kMul, {}}, {grown, theta}));
  std::vector<float> exponents;
  for (std::uint32_t j = 0; j < a.rope_dim / 2; ++j)
    exponents.push_back(static_cast<float>(-2.0 * j / r));
  CYB_ASSIGN(const ValueId powers,
             sink.constant(exponents, Shape{static_cast<std::int64_t>(exponents.size())}));
  return emit_one(sink, {OpTag::kPow, {}}, {base, powers});
}

/// f32 [R/2], or none where base^(-2j/R) holds.
Result<ValueId> frequencies(OpSink& sink, const BlockAttentionAttrs& a,
                            std::span<const ValueId> in) {
  constexpr std::int64_t kGreater = 4;
  if (a.rope_rule == RopeRule::kFixed) return value_at(in, kFreqs);
  if (a.rope_rule == RopeRule::kDynamic) return dynamic_frequencies(sink, a, in);
  CYB_ASSIGN(const ValueId t, float_length(sink, in));
  CYB_ASSIGN(const ValueId original, scalar(sink, static_cast<double>(a.rope_original)));
  CYB_ASSIGN(const ValueId longer,
             emit_one(sink, {OpTag::kCompare, Attrs{{kGreater}}}, {t, original}));
  return emit_one(sink, {OpTag::kWhere, {}},
                  {longer, value_at(in, kLongFreqs), value_at(in, kFreqs)});
}

Result<std::vector<ValueId>> decompose_block_attention(const Attrs& attrs,
                                                       std::span<const ValueId> in, OpSink& sink) {
  const auto a = BlockAttentionAttrs::from(attrs);
  const bool batched = sink.spec(in[0]).rank() == 3;
  CYB_ASSIGN(ValueId q, heads(sink, a, in[0], a.n_heads, value_at(in, kQGain)));
  CYB_ASSIGN(ValueId k, heads(sink, a, in[1], a.n_kv_heads, value_at(in, kKGain)));
  CYB_ASSIGN(const ValueId v, heads(sink, a, in[2], a.n_kv_heads, kNoValue));
  if (a.rope_dim > 0) {
    CYB_ASSIGN(const ValueId pos, sink.positions());
    const Op rope{OpTag::kRope, RopeAttrs{a.head_dim, a.rope_dim, a.rope_base,
                                          static_cast<RopeStyle>(a.rope_style)}
                                    .to_attrs()};
    CYB_ASSIGN(const ValueId freqs, frequencies(sink, a, in));
    CYB_ASSIGN(q, emit_one(sink, rope, {q, pos, freqs}));
    CYB_ASSIGN(k, emit_one(sink, rope, {k, pos, freqs}));
  }
  // The cache keeps all rows: a ring would hide the absolute position that orders Sdpa's sums.
  const Op cache{OpTag::kKvCache, KvCacheAttrs{a.layer, 0}.to_attrs()};
  CYB_ASSIGN(const std::vector<ValueId> kv, sink.emit(cache, std::array{k, v}));
  if (kv.size() != 2) return fail(internal_error("KvCache has two outputs"));
  const SdpaAttrs sdpa{a.n_heads, a.n_kv_heads, a.head_dim, true, a.scale, a.softcap, a.window};
  CYB_ASSIGN(ValueId y, emit_one(sink, {OpTag::kSdpa, sdpa.to_attrs()}, {q, kv[0], kv[1]}));
  CYB_ASSIGN(y, permute_heads(sink, y));
  const std::int64_t width = std::int64_t{a.n_heads} * a.head_dim;
  const ReshapeAttrs join{batched ? std::vector<std::int64_t>{0, 0, width}
                                  : std::vector<std::int64_t>{-1, width}};
  CYB_ASSIGN(y, emit_one(sink, {OpTag::kReshape, join.to_attrs()}, {y}));
  return std::vector{y};
}

}  // namespace

OpImpl impl_BlockAttention() {
  return {.attrs = kAttrs, .infer = infer_block_attention, .decompose = decompose_block_attention};
}

}  // namespace cyb
