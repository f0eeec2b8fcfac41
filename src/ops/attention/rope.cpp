// Rope (tag 26): x [B,H,S,D], pos i32 [S] or [B,S], freqs f32 [R/2]?. theta_j = pos·f_j in f64; cos
// and sin rounded to f32; y1 = x1·cos - x2·sin, y2 = x1·sin + x2·cos in f32; other dims pass
// through.
#include "ops/attention/rope.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {

std::vector<double> rope_frequencies(const RopeAttrs& attrs, std::span<const float> freqs) {
  const std::uint32_t half = attrs.rope_dim / 2;
  if (!freqs.empty()) return {freqs.begin(), freqs.end()};
  const double over = attrs.style == RopeStyle::kProportional ? attrs.head_dim : attrs.rope_dim;
  std::vector<double> out(half);
  for (std::uint32_t j = 0; j < half; ++j) {
    out[j] = math::pow_f64(static_cast<double>(attrs.base), -2.0 * j / over);
  }
  return out;
}

namespace {

constexpr std::array kAttrs = {AttrSpec{"head_dim", AttrKind::kU32},
                               AttrSpec{"rope_dim", AttrKind::kU32},
                               AttrSpec{"base", AttrKind::kF32}, AttrSpec{"style", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_rope(const Attrs& attrs, rules::Specs in) {
  const auto a = RopeAttrs::from(attrs);
  if (a.head_dim == 0 || a.head_dim % 2 != 0) return fail(rules::bad_payload("head_dim"));
  if (a.rope_dim % 2 != 0 || a.rope_dim > a.head_dim) return fail(rules::bad_payload("rope_dim"));
  if (attrs.i(3) > 2) return fail(rules::bad_payload("style"));
  const bool given = !rules::at(in, 2).absent;
  if (!given && (!std::isfinite(a.base) || a.base <= 0.0F)) return fail(rules::bad_payload("base"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_dtype(in, 1, DType::kI32));
  std::vector<Dim> want = in[0].dims;
  want[3] = Dim(a.head_dim);
  CYB_TRY(rules::want_dims(in, 0, want));
  if (in[1].rank() == 2) {
    CYB_TRY(rules::want_dims(in, 1, std::vector<Dim>{want[0], want[2]}));
  } else {
    CYB_TRY(rules::want_dims(in, 1, std::vector<Dim>{want[2]}));
  }
  if (given) {
    CYB_TRY(rules::want_dtype(in, 2, DType::kF32));
    CYB_TRY(rules::want_dims(in, 2, std::vector<Dim>{Dim(a.rope_dim / 2)}));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

/// First elements of pair j and the distance to its second.
struct Pairs {
  std::size_t step, distance;
};

Pairs pairs_of(const RopeAttrs& a) {
  switch (a.style) {
    case RopeStyle::kGptj:
      return {2, 1};
    case RopeStyle::kProportional:
      return {1, a.head_dim / 2};
    default:
      return {1, a.rope_dim / 2};
  }
}

Result<void> reference_rope(const RefCall& call) {
  const auto a = RopeAttrs::from(call.attrs);
  const ref::Values x(call.inputs[0]), given(ref::input(call, 2));
  ref::Results y(call.outputs[0]);
  const TensorView& pos = call.inputs[1];
  const Shape& shape = call.inputs[0].shape;
  const std::size_t heads = ref::extent(shape, 1), s = ref::extent(shape, 2), d = a.head_dim;
  const std::size_t half = a.rope_dim / 2;
  const Pairs pairs = pairs_of(a);
  const auto f = rope_frequencies(a, std::span(given.data(), given.present() ? half : 0));
  std::vector<float> cosines(half), sines(half);
  std::copy_n(x.data(), x.size(), y.data());
  for (std::size_t bs = 0; bs < ref::extent(shape, 0) * s; ++bs) {
    const std::size_t b = bs / s, i = bs % s;
    const double p = pos.as<std::int32_t>()[pos.shape.rank() == 2 ? bs : i];
    for (std::size_t j = 0; j < half; ++j) {
      const math::SinCos angle = math::sincos_f64(p * f[j]);
      cosines[j] = static_cast<float>(angle.cos);
      sines[j] = static_cast<float>(angle.sin);
    }
    for (std::size_t h = 0; h < heads; ++h) {
      float* row = y.data() + ((b * heads + h) * s + i) * d;
      for (std::size_t j = 0; j < half; ++j) {
        float &first = row[j * pairs.step], &second = row[j * pairs.step + pairs.distance];
        const float x1 = first, x2 = second;
        first = x1 * cosines[j] - x2 * sines[j];
        second = x1 * sines[j] + x2 * cosines[j];
      }
    }
  }
  y.finish();
  return {};
}

}  // namespace

OpImpl impl_Rope() {
  return {.attrs = kAttrs, .infer = infer_rope, .reference = reference_rope};
}

}  // namespace cyb
