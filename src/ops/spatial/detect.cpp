// Detection: NonMaxSuppression (tag 290), NmsBy (425), RoiAlign (420, He et al., arXiv 1703.06870).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

struct Limits {
  std::int64_t most = 0;
  double iou = 0.0, score = 0.0;
  bool has_score = false, center = false;
};

struct Box {
  double x1, y1, x2, y2;
  double area() const { return (x2 - x1) * (y2 - y1); }
};

/// A box of corners (in any order) or of centre, width and height.
Box box_at(const TensorView& boxes, std::size_t k, bool center) {
  const auto v = [&](std::size_t i) { return ref::number_at(boxes, 4 * k + i); };
  if (center) return {v(0) - v(2) / 2.0, v(1) - v(3) / 2.0, v(0) + v(2) / 2.0, v(1) + v(3) / 2.0};
  return {std::fmin(v(1), v(3)), std::fmin(v(0), v(2)), std::fmax(v(1), v(3)),
          std::fmax(v(0), v(2))};
}

double overlap(const Box& a, const Box& b) {
  const double w = std::fmin(a.x2, b.x2) - std::fmax(a.x1, b.x1),
               h = std::fmin(a.y2, b.y2) - std::fmax(a.y1, b.y1);
  if (!(w > 0.0 && h > 0.0) || !(a.area() > 0.0 && b.area() > 0.0)) return 0.0;
  return w * h / (a.area() + b.area() - w * h);
}

using Picks = std::vector<std::array<std::int64_t, 3>>;  // batch, class, box

/// Boxes by falling score (ties: lower index); each is kept unless it overlaps a kept one by more
/// than `iou`.
Picks suppress(const TensorView& boxes, const TensorView& scores, const Limits& limits) {
  Picks out;
  const std::size_t batches = ref::extent(scores.shape, 0), classes = ref::extent(scores.shape, 1),
                    n = ref::extent(scores.shape, 2);
  for (std::size_t bc = 0; bc < batches * classes; ++bc) {
    const auto score = [&](std::size_t k) { return ref::number_at(scores, bc * n + k); };
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < n; ++k) {
      if (!limits.has_score || score(k) > limits.score) order.push_back(k);
    }
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return score(a) > score(b); });
    std::vector<Box> kept;
    for (const std::size_t k : order) {
      if (static_cast<std::int64_t>(kept.size()) >= limits.most) break;
      const Box box = box_at(boxes, bc / classes * n + k, limits.center);
      if (std::ranges::any_of(kept,
                              [&](const Box& other) { return overlap(box, other) > limits.iou; }))
        continue;
      kept.push_back(box);
      out.push_back({static_cast<std::int64_t>(bc / classes),
                     static_cast<std::int64_t>(bc % classes), static_cast<std::int64_t>(k)});
    }
  }
  return out;
}

Result<void> check_boxes(Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_real(in, 1));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_rank(in, 1, 3));
  return rules::want_dims(in, 0, std::array{in[1].dims[0], in[1].dims[2], Dim(4)});
}

constexpr std::array kNmsAttrs = {AttrSpec{"iou", AttrKind::kF32},
                                  AttrSpec{"score", AttrKind::kF32},
                                  AttrSpec{"max", AttrKind::kU32}};

Limits limits_of(const Attrs& a) {
  return {a.i(2), static_cast<double>(a.f(0)), static_cast<double>(a.f(1)), true, false};
}

Result<std::vector<TensorSpec>> infer_nms(const Attrs&, Specs in) {
  CYB_TRY(check_boxes(in));
  return rules::one(DType::kI32, {Dim::anonymous(), 3});
}

std::vector<Shape> picks_shape(const Picks& picks) {
  return {Shape{static_cast<std::int64_t>(picks.size()), 3}};
}

Result<std::vector<Shape>> nms_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  return picks_shape(suppress(in[0], in[1], limits_of(attrs)));
}

Result<void> reference_nms(const RefCall& call) {
  const Picks picks = suppress(call.inputs[0], call.inputs[1], limits_of(call.attrs));
  for (std::size_t i = 0; i < 3 * picks.size(); ++i) {
    call.outputs[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(picks[i / 3][i % 3]);
  }
  return {};
}

constexpr std::array kByAttrs = {AttrSpec{"center", AttrKind::kU8}};

Limits limits_by(const Attrs& attrs, std::span<const TensorView> in) {
  const auto given = [&](std::size_t k) {
    return k < in.size() && in[k].present() && in[k].shape.count() > 0;
  };
  Limits l;
  if (given(2)) l.most = ref::integer_at(in[2], 0);
  if (given(3)) l.iou = ref::number_at(in[3], 0);
  l.has_score = given(4);
  if (l.has_score) l.score = ref::number_at(in[4], 0);
  l.center = attrs.i(0) != 0;
  return l;
}

Result<std::vector<TensorSpec>> infer_nms_by(const Attrs&, Specs in) {
  CYB_TRY(check_boxes(in));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_index(in, 2));
  for (std::size_t k = 3; k < in.size(); ++k) {
    if (!in[k].absent) CYB_TRY(rules::want_real(in, k));
  }
  return rules::one(DType::kI64, {Dim::anonymous(), 3});
}

Result<std::vector<Shape>> nms_by_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  return picks_shape(suppress(in[0], in[1], limits_by(attrs, in)));
}

Result<void> reference_nms_by(const RefCall& call) {
  const Picks picks = suppress(call.inputs[0], call.inputs[1], limits_by(call.attrs, call.inputs));
  for (std::size_t i = 0; i < 3 * picks.size(); ++i)
    call.outputs[0].as<std::int64_t>()[i] = picks[i / 3][i % 3];
  return {};
}

constexpr std::array kRoiAttrs = {
    AttrSpec{"mode", AttrKind::kU8},           AttrSpec{"out_h", AttrKind::kU32},
    AttrSpec{"out_w", AttrKind::kU32},         AttrSpec{"sampling_ratio", AttrKind::kU32},
    AttrSpec{"spatial_scale", AttrKind::kF32}, AttrSpec{"half_pixel", AttrKind::kU8}};

/// x [B, C, H, W], rois [R, 4], batch i64 [R] -> [R, C, out_h, out_w].
Result<std::vector<TensorSpec>> infer_roi(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_real(in, 1));
  CYB_TRY(rules::want_index(in, 2));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_at_most(attrs, 0, 1, "mode"));
  if (attrs.i(1) < 1 || attrs.i(2) < 1) return fail(rules::bad_payload("out_h"));
  if (attrs.i(3) > 4096) return fail(rules::bad_payload("sampling_ratio"));
  for (std::size_t d = 2; d < 4; ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  CYB_TRY(rules::want_rank(in, 1, 2));
  CYB_TRY(rules::want_dims(in, 1, std::array{in[1].dims[0], Dim(4)}));
  CYB_TRY(rules::want_dims(in, 2, std::array{in[1].dims[0]}));
  return rules::one(in[0].dtype, {in[1].dims[0], in[0].dims[1], attrs.i(1), attrs.i(2)});
}

/// Four neighbours and their shares; all zero outside the map.
struct Corner {
  std::array<std::size_t, 4> at{};
  std::array<double, 4> share{};
};

struct Side {
  std::size_t low, high;
  double share;
};

Side side_of(double v, std::size_t n) {
  v = std::fmax(v, 0.0);
  const auto low = static_cast<std::size_t>(v);
  if (low >= n - 1) return {n - 1, n - 1, 0.0};
  return {low, low + 1, v - static_cast<double>(low)};
}

Corner corner_of(double y, double x, std::size_t h, std::size_t w) {
  const auto inside = [](double v, std::size_t n) {
    return v >= -1.0 && v <= static_cast<double>(n);
  };
  if (!inside(y, h) || !inside(x, w)) return {};
  const Side r = side_of(y, h), c = side_of(x, w);
  return {{r.low * w + c.low, r.low * w + c.high, r.high * w + c.low, r.high * w + c.high},
          {(1.0 - r.share) * (1.0 - c.share), (1.0 - r.share) * c.share, r.share * (1.0 - c.share),
           r.share * c.share}};
}

struct Bin {
  double start_h, start_w, size_h, size_w;
  std::size_t grid_h, grid_w;
};

Bin bin_of(const RefCall& call, std::size_t roi) {
  const auto v = [&](std::size_t i) {
    return ref::number_at(call.inputs[1], 4 * roi + i) * static_cast<double>(call.attrs.f(4));
  };
  const bool half = call.attrs.i(5) != 0;
  const double offset = half ? 0.5 : 0.0;
  Bin b{v(1) - offset, v(0) - offset, v(3) - v(1), v(2) - v(0), 0, 0};
  if (!half) {
    b.size_h = std::fmax(b.size_h, 1.0);
    b.size_w = std::fmax(b.size_w, 1.0);
  }
  b.size_h /= static_cast<double>(call.attrs.i(1));
  b.size_w /= static_cast<double>(call.attrs.i(2));
  const auto grid = [&](double size) {
    if (call.attrs.i(3) > 0) return static_cast<std::size_t>(call.attrs.i(3));
    return static_cast<std::size_t>(std::clamp(std::ceil(size), 0.0, 4096.0));
  };
  b.grid_h = grid(b.size_h);
  b.grid_w = grid(b.size_w);
  return b;
}

template <class C>
double pool_bin(const C* plane, const Shape& x, const Bin& b, std::array<std::size_t, 2> cell,
                bool average) {
  const std::size_t h = ref::extent(x, 2), w = ref::extent(x, 3);
  double sum = 0.0, largest = 0.0;
  bool first = true;
  for (std::size_t i = 0; i < b.grid_h; ++i) {
    const double y = b.start_h + (static_cast<double>(cell[0]) +
                                  (static_cast<double>(i) + 0.5) / static_cast<double>(b.grid_h)) *
                                     b.size_h;
    for (std::size_t j = 0; j < b.grid_w; ++j) {
      const double q =
          b.start_w + (static_cast<double>(cell[1]) +
                       (static_cast<double>(j) + 0.5) / static_cast<double>(b.grid_w)) *
                          b.size_w;
      const Corner c = corner_of(y, q, h, w);
      double value = 0.0, top = -std::numeric_limits<double>::infinity();
      for (std::size_t k = 0; k < 4; ++k) {
        const double part = c.share[k] * static_cast<double>(plane[c.at[k]]);
        value += part;
        top = std::fmax(top, part);
      }
      sum += value;
      largest = first ? top : std::fmax(largest, top);
      first = false;
    }
  }
  if (!average) return largest;
  return sum / static_cast<double>(std::max<std::size_t>(b.grid_h * b.grid_w, 1));
}

Result<void> reference_roi(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &out = call.outputs[0].shape;
  const std::size_t cells = ref::extent(out, 2, 4), channels = ref::extent(out, 1),
                    plane = ref::extent(x, 2, 4);
  for (std::size_t r = 0; r < ref::extent(out, 0); ++r) {
    const std::int64_t image = ref::integer_at(call.inputs[2], r);
    if (image < 0 || image >= x[0])
      return fail(invalid_input("Op::RoiAlign: a batch index out of range"));
    for (std::size_t i = 0; i < 4; ++i) {
      if (!std::isfinite(ref::number_at(call.inputs[1], 4 * r + i)))
        return fail(non_finite("RoiAlign", "input 1", 4 * r + i));
    }
  }
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t r = i / (cells * channels), c = i / cells % channels, cell = i % cells;
      const auto image = static_cast<std::size_t>(ref::integer_at(call.inputs[2], r));
      const std::size_t w = ref::extent(out, 3);
      y[i] = static_cast<C>(pool_bin(in.data() + (image * channels + c) * plane, x, bin_of(call, r),
                                     {cell / w, cell % w}, call.attrs.i(0) == 0));
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_NonMaxSuppression() {
  return {
      .attrs = kNmsAttrs, .infer = infer_nms, .reference = reference_nms, .run_shapes = nms_shapes};
}
OpImpl impl_NmsBy() {
  return {.attrs = kByAttrs,
          .infer = infer_nms_by,
          .reference = reference_nms_by,
          .run_shapes = nms_by_shapes};
}
OpImpl impl_RoiAlign() {
  return {.attrs = kRoiAttrs, .infer = infer_roi, .reference = reference_roi};
}

}  // namespace cyb
