// Resize (tag 421): ONNX's resampling in all modes, one axis after the other, innermost first, in
// f64, rounded once.
#include "ops/spatial/resize.hpp"

#include <algorithm>
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Mode : std::int64_t { kNearest, kLinear, kCubic };
enum Coordinates : std::int64_t { kHalf, kHalfSymmetric, kTorchHalf, kAlign, kAsymmetric, kCrop };
enum Nearest : std::int64_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

constexpr std::array kAttrs = {AttrSpec{"mode", AttrKind::kU8},
                               AttrSpec{"coordinates", AttrKind::kU8},
                               AttrSpec{"nearest", AttrKind::kU8},
                               AttrSpec{"cubic_a", AttrKind::kF32},
                               AttrSpec{"exclude_outside", AttrKind::kU8},
                               AttrSpec{"extrapolation", AttrKind::kF32},
                               AttrSpec{"antialias", AttrKind::kU8},
                               AttrSpec{"axes", AttrKind::kI32List},
                               AttrSpec{"policy", AttrKind::kU8},
                               AttrSpec{"fixed_scales", AttrKind::kBytes}};

struct Axis {
  std::int64_t in = 1, out = 1;
  double scale = 1.0;
  double roi_start = 0.0, roi_end = 1.0;
};

struct Filter {
  std::int64_t mode, coordinates, nearest;
  double a, extrapolation;
  bool exclude_outside, antialias;
  explicit Filter(const Attrs& attrs)
      : mode(attrs.i(0)),
        coordinates(attrs.i(1)),
        nearest(attrs.i(2)),
        a(attrs.f(3)),
        extrapolation(attrs.f(5)),
        exclude_outside(attrs.i(4) != 0),
        antialias(attrs.i(6) != 0) {}
};

/// Where output x lies in the input.
double coordinate(const Filter& f, const Axis& axis, std::int64_t at) {
  const auto x = static_cast<double>(at), in = static_cast<double>(axis.in),
             width = axis.scale * in;
  switch (f.coordinates) {
    case kHalfSymmetric: {
      const double adjustment = static_cast<double>(axis.out) / width;
      return in / 2.0 * (1.0 - adjustment) + (x + 0.5) / axis.scale - 0.5;
    }
    case kTorchHalf:
      return width == 1.0 ? -0.5 : (x + 0.5) / axis.scale - 0.5;
    case kAlign:
      return width == 1.0 ? 0.0 : x * (in - 1.0) / (width - 1.0);
    case kAsymmetric:
      return x / axis.scale;
    case kCrop: {
      const double range = axis.roi_end - axis.roi_start;
      const double from = axis.roi_start * (in - 1.0);
      return width == 1.0 ? from + range * (in - 1.0) / 2.0
                          : from + x * range * (in - 1.0) / (width - 1.0);
    }
    default:
      return (x + 0.5) / axis.scale - 0.5;
  }
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
  return 0.0;
}

double nearest_share(std::int64_t rule, double ratio) {
  switch (rule) {
    case kPreferFloor:
      return ratio <= 0.5 ? 0.0 : 1.0;
    case kPreferCeil:
      return ratio < 0.5 ? 0.0 : 1.0;
    default:
      return rule == kFloor ? 0.0 : 1.0;
  }
}

/// Weights of the inputs first, first + 1, ... for one output.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
};

Taps taps_of(const Filter& f, const Axis& axis, double x) {
  const double base = std::ceil(x) - 1.0, ratio = x - base;  // in (0, 1]
  Taps t;
  if (f.mode == kNearest) {
    const double share = ratio == 1.0 ? 1.0 : nearest_share(f.nearest, ratio);
    t.weights = {1.0 - share, share};
    t.first = static_cast<std::int64_t>(base);
    return t;
  }
  const double scale = f.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double radius = f.mode == kLinear ? 1.0 : 2.0;
  const auto start = static_cast<std::int64_t>(std::floor(-radius / scale)) + 1;
  for (std::int64_t i = start; i < 2 - start; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * scale;
    t.weights.push_back(f.mode == kLinear ? std::fmax(1.0 - std::fabs(distance), 0.0)
                                          : cubic_weight(distance, f.a));
  }
  t.first = static_cast<std::int64_t>(base) + start;
  return t;
}

void normalise(const Filter& f, const Axis& axis, Taps& t) {
  if (f.exclude_outside) {
    for (std::size_t k = 0; k < t.weights.size(); ++k) {
      const std::int64_t at = t.first + static_cast<std::int64_t>(k);
      if (at < 0 || at >= axis.in) t.weights[k] = 0.0;
    }
  }
  if (!f.exclude_outside && (!f.antialias || f.mode == kNearest)) return;
  double sum = 0.0;
  for (const double w : t.weights) sum += w;
  for (double& w : t.weights) w /= sum;
}

/// One axis of [outer, in, inner] -> [outer, out, inner].
std::vector<double> resize_axis(const std::vector<double>& x, const Filter& f, const Axis& axis,
                                std::size_t inner) {
  const auto in = static_cast<std::size_t>(axis.in), out = static_cast<std::size_t>(axis.out);
  const std::size_t outer = x.size() / (in * inner);
  std::vector<double> y(outer * out * inner);
  for (std::size_t o = 0; o < out; ++o) {
    const double at = coordinate(f, axis, static_cast<std::int64_t>(o));
    const bool outside =
        f.coordinates == kCrop && (at < 0.0 || at > static_cast<double>(axis.in - 1));
    Taps t = taps_of(f, axis, at);
    normalise(f, axis, t);
    for (std::size_t i = 0; i < outer * inner; ++i) {
      const std::size_t row = i / inner * in * inner + i % inner;
      double sum = 0.0;
      for (std::size_t k = 0; k < t.weights.size(); ++k) {
        if (t.weights[k] == 0.0) continue;
        const std::int64_t from =
            std::clamp<std::int64_t>(t.first + static_cast<std::int64_t>(k), 0, axis.in - 1);
        sum += t.weights[k] * x[row + static_cast<std::size_t>(from) * inner];
      }
      y[(i / inner * out + o) * inner + i % inner] = outside ? f.extrapolation : sum;
    }
  }
  return y;
}

/// Scales of the call: the attribute's, or input 2's; empty where sizes are given.
std::vector<double> scales_of(const Attrs& attrs, const TensorView& input) {
  std::vector<double> out;
  const std::vector<std::byte>& fixed = attrs.bytes(9);
  for (std::size_t i = 0; i + 4 <= fixed.size(); i += 4) {
    float v = 0;
    std::memcpy(&v, fixed.data() + i, 4);
    out.push_back(static_cast<double>(v));
  }
  if (!out.empty() || !input.present()) return out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(input.shape.count()); ++i)
    out.push_back(ref::number_at(input, i));
  return out;
}

std::vector<std::size_t> resized_axes(const Attrs& attrs, std::size_t rank) {
  std::vector<std::size_t> axes;
  for (const std::int64_t a : attrs.list(7)) axes.push_back(ref::axis_of(a, rank));
  for (std::size_t d = 0; d < rank && attrs.list(7).empty(); ++d) axes.push_back(d);
  return axes;
}

/// Sizes under a policy keep the aspect of x.
void apply_policy(std::vector<Axis>& axes, std::span<const std::size_t> picked,
                  std::int64_t policy) {
  double scale = policy == 1 ? HUGE_VAL : 0.0;
  for (const std::size_t d : picked)
    scale = policy == 1 ? std::fmin(scale, axes[d].scale) : std::fmax(scale, axes[d].scale);
  for (const std::size_t d : picked) {
    axes[d].scale = scale;
    axes[d].out =
        static_cast<std::int64_t>(std::floor(scale * static_cast<double>(axes[d].in) + 0.5));
  }
}

Result<std::vector<Axis>> plan(const Attrs& attrs, std::span<const TensorView> in) {
  const Shape& x = in[0].shape;
  const auto at = [&](std::size_t k) { return k < in.size() ? in[k] : TensorView{}; };
  const std::vector<std::size_t> picked = resized_axes(attrs, x.rank());
  const std::vector<double> scales = scales_of(attrs, at(2));
  const std::vector<std::int64_t> sizes = ref::integers(at(3));
  std::vector<Axis> axes(x.rank());
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d].in = axes[d].out = x[d];
  const std::size_t given = scales.empty() ? sizes.size() : scales.size();
  if (given != picked.size()) return fail(invalid_input("Op::Resize: one scale or size per axis"));
  const TensorView roi = at(1);
  const bool has_roi =
      roi.present() && static_cast<std::size_t>(roi.shape.count()) == 2 * picked.size();
  for (std::size_t i = 0; i < picked.size(); ++i) {
    Axis& axis = axes[picked[i]];
    if (!scales.empty()) {
      if (!(scales[i] > 0.0 && scales[i] < 0x1p20))
        return fail(invalid_input("Op::Resize: a bad scale"));
      axis.scale = scales[i];
      axis.out = static_cast<std::int64_t>(std::floor(static_cast<double>(axis.in) * scales[i]));
    } else {
      if (sizes[i] < 0 || sizes[i] > (std::int64_t{1} << 31))
        return fail(invalid_input("Op::Resize: a bad size"));
      if (axis.in == 0) return fail(invalid_input("Op::Resize: an empty input"));
      axis.out = sizes[i];
      axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    }
    if (has_roi) {
      axis.roi_start = ref::number_at(roi, i);
      axis.roi_end = ref::number_at(roi, picked.size() + i);
    }
  }
  if (scales.empty() && attrs.i(8) != 0) apply_policy(axes, picked, attrs.i(8));
  return axes;
}

Result<std::vector<TensorSpec>> infer_resize(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_at_most(attrs, 0, kCubic, "mode"));
  CYB_TRY(rules::want_at_most(attrs, 1, kCrop, "coordinates"));
  CYB_TRY(rules::want_at_most(attrs, 2, kCeil, "nearest"));
  CYB_TRY(rules::want_at_most(attrs, 8, 2, "policy"));
  if (!rules::at(in, 1).absent) CYB_TRY(rules::want_real(in, 1));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_real(in, 2));
  if (!rules::at(in, 3).absent) CYB_TRY(rules::want_list(in, 3));
  for (const std::int64_t a : attrs.list(7)) CYB_TRY(rules::axis(a, in[0].rank(), "axes"));
  const std::vector<std::size_t> picked = resized_axes(attrs, in[0].rank());
  const std::vector<double> scales = scales_of(attrs, {});
  if (!scales.empty() && scales.size() != picked.size())
    return fail(rules::bad_payload("fixed_scales"));
  std::vector<Dim> dims = in[0].dims;
  const auto* sizes = rules::value_of(in, 3);
  const bool by_size = sizes != nullptr && sizes->size() == picked.size() && attrs.i(8) == 0;
  for (std::size_t i = 0; i < picked.size(); ++i) {
    Dim& dim = dims[picked[i]];
    if (!scales.empty()) {
      const bool whole =
          scales[i] == std::floor(scales[i]) && scales[i] >= 1.0 && scales[i] < 0x1p20;
      if (!(scales[i] > 0.0 && scales[i] < 0x1p20)) return fail(rules::bad_payload("fixed_scales"));
      if (dim.is_constant()) {
        dim =
            static_cast<std::int64_t>(std::floor(static_cast<double>(dim.constant()) * scales[i]));
      } else {
        dim = whole ? dim * static_cast<std::int64_t>(scales[i]) : Dim::anonymous();
      }
    } else {
      dim = by_size ? (*sizes)[i] : Dim::anonymous();
    }
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Result<std::vector<Shape>> resize_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  CYB_ASSIGN(const std::vector<Axis> axes, plan(attrs, in));
  Shape out = in[0].shape;
  for (std::size_t d = 0; d < axes.size(); ++d) out[d] = axes[d].out;
  return std::vector{out};
}

/// To the dtype: integers round half to even and saturate.
template <class C>
C rounded(double v) {
  if constexpr (std::is_integral_v<C>) {
    const double r = std::nearbyint(v);
    using Limits = std::numeric_limits<C>;
    if (r >= static_cast<double>(Limits::max())) return Limits::max();
    return r <= static_cast<double>(Limits::lowest()) ? Limits::lowest() : static_cast<C>(r);
  } else {
    return static_cast<C>(v);
  }
}

Result<void> reference_resize(const RefCall& call) {
  CYB_ASSIGN(const std::vector<Axis> axes, plan(call.attrs, call.inputs));
  const Filter filter(call.attrs);
  const TensorView& x = call.inputs[0];
  if (call.outputs[0].shape.count() == 0) return {};
  if (x.shape.count() == 0) return fail(invalid_input("Op::Resize: an empty input"));
  std::vector<double> values(static_cast<std::size_t>(x.shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = ref::number_at(x, i);
  std::size_t inner = 1;
  for (std::size_t d = axes.size(); d-- > 0;) {
    const bool same =
        axes[d].out == axes[d].in && axes[d].scale == 1.0 && filter.coordinates != kCrop;
    if (!same) values = resize_axis(values, filter, axes[d], inner);
    inner *= static_cast<std::size_t>(axes[d].out);
  }
  return ref::visit_number(x.dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = rounded<C>(values[i]);
    y.finish();
    return {};
  });
}

/// None where output `o` is not one or two inputs.
std::optional<ResizeTap> tap_of(const Filter& f, const Axis& axis, std::int64_t o) {
  const double at = coordinate(f, axis, o);
  if (f.coordinates == kCrop && (at < 0.0 || at > static_cast<double>(axis.in - 1))) return {};
  Taps t = taps_of(f, axis, at);
  normalise(f, axis, t);
  ResizeTap tap{0, 0, 0.0, 0.0};
  std::size_t n = 0;
  for (std::size_t k = 0; k < t.weights.size(); ++k) {
    if (t.weights[k] == 0.0) continue;
    const auto from = static_cast<std::size_t>(
        std::clamp<std::int64_t>(t.first + static_cast<std::int64_t>(k), 0, axis.in - 1));
    if (n == 0) tap = {from, from, t.weights[k], 0.0};
    if (n == 1) tap.second = from, tap.second_weight = t.weights[k];
    ++n;
  }
  if (n == 0 || n > 2) return {};
  return tap;
}

}  // namespace

Result<std::optional<std::vector<ResizeTaps>>> resize_taps(const Attrs& attrs,
                                                           std::span<const TensorView> in) {
  using Out = std::optional<std::vector<ResizeTaps>>;
  CYB_ASSIGN(const std::vector<Axis> axes, plan(attrs, in));
  const Filter filter(attrs);
  std::vector<ResizeTaps> out(axes.size());
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const bool same =
        axes[d].out == axes[d].in && axes[d].scale == 1.0 && filter.coordinates != kCrop;
    if (!same && d + 2 < axes.size()) return Out();
    for (std::int64_t o = 0; o < axes[d].out; ++o) {
      const auto here = static_cast<std::size_t>(o);
      const std::optional<ResizeTap> tap =
          same ? std::optional(ResizeTap{here, here, 1.0, 0.0}) : tap_of(filter, axes[d], o);
      if (!tap) return Out();
      out[d].push_back(*tap);
    }
  }
  return Out(std::move(out));
}

OpImpl impl_Resize() {
  return {.attrs = kAttrs,
          .infer = infer_resize,
          .reference = reference_resize,
          .run_shapes = resize_shapes};
}

}  // namespace cyb
