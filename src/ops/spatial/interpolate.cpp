// Interpolate (tag 100): x [B, C, H, W] resampled by one scale or to a size: nearest, bilinear,
// area.
#include <algorithm>
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Mode : std::int64_t { kNearest, kBilinear, kArea };

constexpr std::array kAttrs = {AttrSpec{"mode", AttrKind::kU8}, AttrSpec{"scale", AttrKind::kF32},
                               AttrSpec{"align_corners", AttrKind::kU8},
                               AttrSpec{"out_h", AttrKind::kU32},
                               AttrSpec{"out_w", AttrKind::kU32}};

Dim resized(const Dim& dim, std::int64_t fixed, float scale) {
  if (fixed != 0) return fixed;
  if (dim.is_constant()) {
    return static_cast<std::int64_t>(
        std::floor(static_cast<double>(dim.constant()) * static_cast<double>(scale)));
  }
  const bool whole = scale == std::floor(scale) && scale >= 1.0F;
  return whole ? dim * static_cast<std::int64_t>(scale) : Dim::anonymous();
}

Result<std::vector<TensorSpec>> infer_interpolate(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_at_most(attrs, 0, kArea, "mode"));
  const bool by_scale = attrs.i(3) == 0 || attrs.i(4) == 0;
  if (by_scale && !(attrs.f(1) > 0.0F && attrs.f(1) < 0x1p20F))
    return fail(rules::bad_payload("scale"));
  for (std::size_t d = 2; d < 4; ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  std::vector<Dim> dims = in[0].dims;
  for (std::size_t d = 2; d < 4; ++d) dims[d] = resized(dims[d], attrs.i(1 + d), attrs.f(1));
  return rules::one(in[0].dtype, std::move(dims));
}

struct Line {
  std::size_t first, last;  // inputs that output covers
  double share;             // of `last` when bilinear
};

Line line_of(std::int64_t mode, bool align, std::size_t out, std::size_t n_in, std::size_t n_out) {
  const auto o = static_cast<double>(out), in = static_cast<double>(n_in),
             total = static_cast<double>(n_out);
  if (mode == kNearest) {
    const std::size_t at = out * n_in / n_out;
    return {at, at, 0.0};
  }
  if (mode == kArea) return {out * n_in / n_out, ((out + 1) * n_in + n_out - 1) / n_out - 1, 0.0};
  double at =
      align ? (n_out > 1 ? o * (in - 1.0) / (total - 1.0) : 0.0) : (o + 0.5) * in / total - 0.5;
  at = std::clamp(at, 0.0, in - 1.0);
  const auto first = static_cast<std::size_t>(at);
  return {first, std::min(first + 1, n_in - 1), at - std::floor(at)};
}

template <class C>
C value_of(const C* plane, std::size_t width, const Line& h, const Line& w, std::int64_t mode) {
  const auto at = [&](std::size_t r, std::size_t c) {
    return static_cast<double>(plane[r * width + c]);
  };
  if (mode == kNearest) return plane[h.first * width + w.first];
  if (mode == kBilinear) {
    const double top = at(h.first, w.first) * (1.0 - w.share) + at(h.first, w.last) * w.share;
    const double bottom = at(h.last, w.first) * (1.0 - w.share) + at(h.last, w.last) * w.share;
    return static_cast<C>(top * (1.0 - h.share) + bottom * h.share);
  }
  ref::Sum<double> sum;
  for (std::size_t r = h.first; r <= h.last; ++r) {
    for (std::size_t c = w.first; c <= w.last; ++c) sum.add(at(r, c));
  }
  return static_cast<C>(sum.value() /
                        static_cast<double>((h.last - h.first + 1) * (w.last - w.first + 1)));
}

Result<void> reference_interpolate(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  const std::size_t planes = ref::extent(x, 0, 2), ih = ref::extent(x, 2), iw = ref::extent(x, 3),
                    oh = ref::extent(y, 2), ow = ref::extent(y, 3);
  const std::int64_t mode = call.attrs.i(0);
  const bool align = call.attrs.i(2) != 0;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]);
    ref::Outputs<C> out(call.outputs[0]);
    std::size_t i = 0;
    for (std::size_t p = 0; p < planes; ++p) {
      for (std::size_t r = 0; r < oh; ++r) {
        const Line h = line_of(mode, align, r, ih, oh);
        for (std::size_t c = 0; c < ow; ++c) {
          out[i++] =
              value_of(in.data() + p * ih * iw, iw, h, line_of(mode, align, c, iw, ow), mode);
        }
      }
    }
    out.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Interpolate() {
  return {.attrs = kAttrs, .infer = infer_interpolate, .reference = reference_interpolate};
}

}  // namespace cyb
