// Embeddings of positions: SinusoidalEmbed (tag 27), RelativePosEmbedding (28, T5, arXiv
// 1910.10683), PosEmbed (121), RotaryEmbedding (442).
#include <algorithm>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kSinusAttrs = {
    AttrSpec{"dim", AttrKind::kU32}, AttrSpec{"max_period", AttrKind::kF32},
    AttrSpec{"layout", AttrKind::kU8}, AttrSpec{"shift", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_sinus(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_rank(in, 0, 1));
  if (in[0].dtype != DType::kI32) CYB_TRY(rules::want_float(in, 0));
  if (attrs.i(0) < 2 || attrs.i(0) % 2 != 0) return fail(rules::bad_payload("dim"));
  if (!(attrs.f(1) > 0.0F)) return fail(rules::bad_payload("max_period"));
  CYB_TRY(rules::want_at_most(attrs, 2, 2, "layout"));
  if (!(attrs.f(3) < static_cast<float>(attrs.i(0)) / 2)) return fail(rules::bad_payload("shift"));
  return rules::one(in[0].dtype == DType::kF16 ? DType::kF16 : DType::kF32,
                    {in[0].dims[0], attrs.i(0)});
}

/// w_j = e^(-j ln(max_period) / (half - shift)).
Result<void> reference_sinus(const RefCall& call) {
  const auto dim = static_cast<std::size_t>(call.attrs.i(0)), half = dim / 2;
  const double rate = math::log_f64(static_cast<double>(call.attrs.f(1))) /
                      (static_cast<double>(half) - static_cast<double>(call.attrs.f(3)));
  const std::int64_t layout = call.attrs.i(2);
  ref::Results y(call.outputs[0]);
  for (std::size_t b = 0; b < ref::extent(call.inputs[0].shape, 0); ++b) {
    const double t = ref::number_at(call.inputs[0], b);
    for (std::size_t j = 0; j < half; ++j) {
      const math::SinCos a = math::sincos_f64(t * math::exp_f64(-static_cast<double>(j) * rate));
      float* row = y.data() + b * dim;
      row[layout == 0 ? 2 * j : layout == 1 ? j : half + j] = static_cast<float>(a.sin);
      row[layout == 0 ? 2 * j + 1 : layout == 1 ? half + j : j] = static_cast<float>(a.cos);
    }
  }
  y.finish();
  return {};
}

constexpr std::array kRelativeAttrs = {AttrSpec{"num_buckets", AttrKind::kU32},
                                       AttrSpec{"max_distance", AttrKind::kU32},
                                       AttrSpec{"bidirectional", AttrKind::kU8}};

/// table [num_buckets, H], pos_q [S], pos_k [T] -> [1, H, S, T].
Result<std::vector<TensorSpec>> infer_relative(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 2));
  const std::int64_t least = attrs.i(2) != 0 ? 4 : 2;
  if (attrs.i(0) < least || attrs.i(0) % least != 0) return fail(rules::bad_payload("num_buckets"));
  if (attrs.i(1) <= attrs.i(0) / least) return fail(rules::bad_payload("max_distance"));
  CYB_TRY(rules::want_dims(in, 0, std::array{Dim(attrs.i(0)), in[0].dims[1]}));
  for (std::size_t k = 1; k < 3; ++k) {
    CYB_TRY(rules::want_dtype(in, k, DType::kI32));
    CYB_TRY(rules::want_rank(in, k, 1));
  }
  return rules::one(in[0].dtype, {1, in[0].dims[1], in[1].dims[0], in[2].dims[0]});
}

std::int64_t bucket(std::int64_t distance, const Attrs& attrs) {
  std::int64_t buckets = attrs.i(0), base = 0, n = std::max<std::int64_t>(-distance, 0);
  if (attrs.i(2) != 0) {
    buckets /= 2;
    base = distance > 0 ? buckets : 0;
    n = distance < 0 ? -distance : distance;
  }
  const std::int64_t half = buckets / 2;
  if (n < half) return base + n;
  // Far distances share buckets on a logarithmic scale, in f32 as the checkpoints do.
  const auto ratio = static_cast<float>(
      math::log_f64(static_cast<double>(static_cast<float>(n) / static_cast<float>(half))));
  const auto whole = static_cast<float>(
      math::log_f64(static_cast<double>(attrs.i(1)) / static_cast<double>(half)));
  const float far = ratio / whole * static_cast<float>(buckets - half);
  return base + std::min(buckets - 1, half + static_cast<std::int64_t>(far));
}

Result<void> reference_relative(const RefCall& call) {
  const Shape& out = call.outputs[0].shape;
  const std::size_t heads = ref::extent(out, 1), s = ref::extent(out, 2), t = ref::extent(out, 3);
  const std::size_t bytes = ref::element_bytes(call.inputs[0].dtype);
  for (std::size_t i = 0; i < heads * s * t; ++i) {
    const std::int64_t distance =
        ref::integer_at(call.inputs[2], i % t) - ref::integer_at(call.inputs[1], i / t % s);
    const auto row = static_cast<std::size_t>(bucket(distance, call.attrs));
    std::memcpy(call.outputs[0].data + i * bytes,
                call.inputs[0].data + (row * heads + i / (s * t)) * bytes, bytes);
  }
  return {};
}

constexpr std::array kPosAttrs = {AttrSpec{"offset", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_pos(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kI32));
  CYB_TRY(rules::want_weight(in, 1));
  CYB_TRY(rules::want_rank(in, 1, 2));
  std::vector<Dim> dims = in[0].dims;
  dims.push_back(in[1].dims[1]);
  return rules::one(DType::kF32, std::move(dims));
}

Result<void> reference_pos(const RefCall& call) {
  const ref::Rows table(call.inputs[1]);
  const std::size_t e = table.length();
  const auto n = static_cast<std::size_t>(call.inputs[0].shape.count());
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t row = ref::integer_at(call.inputs[0], i) + call.attrs.i(0);
    if (row < 0 || static_cast<std::size_t>(row) >= table.count())
      return fail(invalid_input("Op::PosEmbed: a position out of range"));
    float* to = call.outputs[0].as<float>() + i * e;
    const float* from = table.read(static_cast<std::size_t>(row), to);
    if (from != to) std::copy_n(from, e, to);
  }
  return {};
}

bool pos_encoded(const Attrs&, std::size_t input) {
  return input == 1;
}

constexpr std::array kRotaryAttrs = {AttrSpec{"rope_dim", AttrKind::kU32},
                                     AttrSpec{"num_heads", AttrKind::kU32},
                                     AttrSpec{"interleaved", AttrKind::kU8}};

/// x [B,H,S,D] or [B,S,H·D]; cos, sin [B,S,R/2], or [P,R/2] picked by pos i64 [B,S].
Result<std::vector<TensorSpec>> infer_rotary(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  for (std::size_t k = 1; k < 3; ++k) CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
  const std::size_t rank = in[0].rank();
  if (rank != 3 && rank != 4)
    return fail(rules::bad_shape(dims_text(in[0].dims), "3 or 4 dimensions"));
  if (rank == 3 && attrs.i(1) < 1) return fail(rules::bad_payload("num_heads"));
  const bool by_position = !rules::at(in, 3).absent;
  const auto width =
      rank == 4 ? std::optional(in[0].dims[3]) : in[0].dims[2].divided_by(attrs.i(1));
  if (!width) return fail(rules::bad_payload("num_heads"));
  const Dim r = attrs.i(0) != 0 ? Dim(attrs.i(0)) : *width;
  if (!r.is_constant() || r.constant() % 2 != 0 ||
      (width->is_constant() && r.constant() > width->constant()))
    return fail(rules::bad_payload("rope_dim"));
  const Dim &b = in[0].dims[0], &s = in[0].dims[rank == 4 ? 2 : 1], half = r.constant() / 2;
  for (std::size_t k = 1; k < 3; ++k) {
    CYB_TRY(rules::want_rank(in, k, by_position ? 2 : 3));
    CYB_TRY(rules::want_dims(
        in, k, by_position ? std::vector{in[1].dims[0], half} : std::vector{b, s, half}));
  }
  if (by_position) {
    CYB_TRY(rules::want_index(in, 3));
    CYB_TRY(rules::want_dims(in, 3, std::array{b, s}));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_rotary(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const bool packed = shape.rank() == 3;
  const std::size_t heads =
      packed ? static_cast<std::size_t>(call.attrs.i(1)) : ref::extent(shape, 1);
  const std::size_t s = ref::extent(shape, packed ? 1 : 2),
                    d = packed ? ref::extent(shape, 2) / heads : ref::extent(shape, 3);
  const std::size_t half = ref::extent(call.inputs[1].shape, call.inputs[1].shape.rank() - 1);
  const TensorView positions = ref::input(call, 3);
  const bool pairs = call.attrs.i(2) != 0;
  for (const std::int64_t p : ref::integers(positions)) {
    if (p < 0 || p >= call.inputs[1].shape[0])
      return fail(invalid_input("Op::RotaryEmbedding: a position out of range"));
  }
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), cos(call.inputs[1]), sin(call.inputs[2]);
    ref::Outputs<C> y(call.outputs[0]);
    std::copy_n(x.data(), x.size(), y.data());
    for (std::size_t row = 0; row < ref::extent(shape, 0) * heads * s; ++row) {
      const std::size_t h = packed ? row % heads : row / s % heads,
                        t = packed ? row / heads % s : row % s, b = row / (heads * s);
      const std::size_t at = ((packed ? (b * s + t) * heads + h : (b * heads + h) * s + t)) * d;
      const std::size_t table =
          positions.present() ? static_cast<std::size_t>(ref::integer_at(positions, b * s + t))
                              : b * s + t;
      for (std::size_t j = 0; j < half; ++j) {
        const std::size_t first = at + (pairs ? 2 * j : j),
                          second = pairs ? first + 1 : first + half;
        const C c = cos[table * half + j], n = sin[table * half + j];
        y[first] = c * x[first] - n * x[second];
        y[second] = n * x[first] + c * x[second];
      }
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_SinusoidalEmbed() {
  return {.attrs = kSinusAttrs, .infer = infer_sinus, .reference = reference_sinus};
}
OpImpl impl_RelativePosEmbedding() {
  return {.attrs = kRelativeAttrs, .infer = infer_relative, .reference = reference_relative};
}
OpImpl impl_PosEmbed() {
  return {.attrs = kPosAttrs,
          .infer = infer_pos,
          .reference = reference_pos,
          .encoded_input = pos_encoded};
}
OpImpl impl_RotaryEmbedding() {
  return {.attrs = kRotaryAttrs, .infer = infer_rotary, .reference = reference_rotary};
}

}  // namespace cyb
