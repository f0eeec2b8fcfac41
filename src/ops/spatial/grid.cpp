// GridSample (tag 422) and AffineGrid (423): sampling at positions in -1..1, 1 to 3 spatial axes.
#include <algorithm>
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Mode : std::int64_t { kLinear, kNearest, kCubic };
enum Padding : std::int64_t { kZeros, kBorder, kReflection };

constexpr std::array kAttrs = {AttrSpec{"mode", AttrKind::kU8}, AttrSpec{"padding", AttrKind::kU8},
                               AttrSpec{"align_corners", AttrKind::kU8}};

/// x [B, C, in...], grid [B, out..., r] -> [B, C, out...]; the grid's last dimension is innermost
/// axis first.
Result<std::vector<TensorSpec>> infer_grid_sample(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_real(in, 1));
  CYB_TRY(rules::want_at_most(attrs, 0, kCubic, "mode"));
  CYB_TRY(rules::want_at_most(attrs, 1, kReflection, "padding"));
  const std::size_t rank = in[0].rank();
  if (rank < 3 || rank > 5)
    return fail(rules::bad_shape(dims_text(in[0].dims), "3 to 5 dimensions"));
  CYB_TRY(rules::want_rank(in, 1, rank));
  for (std::size_t d = 2; d < rank; ++d) CYB_TRY(rules::want_nonempty(in[0], d));
  std::vector<Dim> grid = in[1].dims;
  grid.front() = in[0].dims[0];
  grid.back() = static_cast<std::int64_t>(rank - 2);
  CYB_TRY(rules::want_dims(in, 1, grid));
  std::vector<Dim> dims = {in[0].dims[0], in[0].dims[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  return rules::one(in[0].dtype, std::move(dims));
}

double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0.0)) return low;
  const double over = x < low ? low - x : x - high;
  if (!(over > 0.0)) return x;
  const double turns = std::floor(over / range), rest = over - turns * range;
  const bool even = std::fmod(turns, 2.0) == 0.0;
  if (x < low) return even ? low + rest : high - rest;
  return even ? high - rest : low + rest;
}

/// Where a normalised position lies on an axis, after the padding rule.
double place(double g, double length, std::int64_t mode, std::int64_t padding, bool align) {
  double x = align ? (g + 1.0) / 2.0 * (length - 1.0) : ((g + 1.0) * length - 1.0) / 2.0;
  if (mode == kNearest) x = std::nearbyint(x);
  const double low = align ? 0.0 : -0.5, high = align ? length - 1.0 : length - 0.5;
  if (x < low || x > high) {
    if (padding == kBorder) x = std::clamp(x, 0.0, length - 1.0);
    if (padding == kReflection) x = reflect(x, low, high);
  }
  return x;
}

struct Taps {
  std::array<std::int64_t, 4> at{};  // -1: nothing there
  std::array<double, 4> weight{};
  std::size_t n = 0;
};

std::int64_t pixel(double i, std::int64_t length, std::int64_t padding, bool align) {
  const auto n = static_cast<double>(length);
  if (i >= 0.0 && i < n) return static_cast<std::int64_t>(i);
  if (padding == kZeros || i != i) return -1;
  if (padding == kBorder) return i < 0.0 ? 0 : length - 1;
  const double r = reflect(i, align ? 0.0 : -0.5, align ? n - 1.0 : n - 0.5);
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(r), 0, length - 1);
}

std::array<double, 4> cubic(double t) {
  constexpr double a = -0.75;
  const auto outer = [](double x) { return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a; };
  const auto inner = [](double x) { return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0; };
  return {outer(t + 1.0), inner(t), inner(1.0 - t), outer(2.0 - t)};
}

Taps taps_of(double x, std::int64_t length, const Attrs& attrs) {
  const std::int64_t mode = attrs.i(0), padding = attrs.i(1);
  const bool align = attrs.i(2) != 0;
  Taps t;
  if (!(std::fabs(x) < 0x1p40)) {
    t.at[0] = -1;
    t.n = 1;
    return t;
  }
  const double base = std::floor(x);
  const auto add = [&](double i, double w) {
    t.at[t.n] = pixel(i, length, padding, align);
    t.weight[t.n++] = w;
  };
  if (mode == kNearest) {
    add(x, 1.0);
  } else if (mode == kLinear) {
    add(base, base + 1.0 - x);
    add(base + 1.0, x - base);
  } else {
    const auto w = cubic(x - base);
    for (std::size_t k = 0; k < 4; ++k) add(base - 1.0 + static_cast<double>(k), w[k]);
  }
  return t;
}

template <class C>
double sample(const C* plane, std::span<const Taps> taps, std::span<const std::int64_t> lengths) {
  double sum = 0.0;
  std::size_t total = 1;
  for (const Taps& t : taps) total *= t.n;
  for (std::size_t k = 0; k < total; ++k) {
    std::size_t rest = k;
    double weight = 1.0;
    std::int64_t at = 0, stride = 1;
    for (std::size_t d = taps.size(); d-- > 0;) {
      const std::size_t i = rest % taps[d].n;
      rest /= taps[d].n;
      weight *= taps[d].weight[i];
      at = at < 0 || taps[d].at[i] < 0 ? -1 : at + taps[d].at[i] * stride;
      stride *= lengths[d];
    }
    if (at >= 0) sum += weight * static_cast<double>(plane[at]);
  }
  return sum;
}

Result<void> reference_grid_sample(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  const std::size_t axes = x.rank() - 2, channels = ref::extent(x, 1),
                    in_size = ref::extent(x, 2, x.rank()), out_size = ref::extent(y, 2, y.rank());
  const auto lengths = x.dims().subspan(2);
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]);
    ref::Outputs<C> out(call.outputs[0]);
    std::array<Taps, 3> taps{};
    for (std::size_t p = 0; p < ref::extent(x, 0) * out_size; ++p) {
      for (std::size_t d = 0; d < axes; ++d) {
        const double g = ref::number_at(call.inputs[1], p * axes + (axes - 1 - d));
        const double at = place(g, static_cast<double>(lengths[d]), call.attrs.i(0),
                                call.attrs.i(1), call.attrs.i(2) != 0);
        taps[d] = taps_of(at, lengths[d], call.attrs);
      }
      const std::size_t image = p / out_size;
      for (std::size_t c = 0; c < channels; ++c) {
        const std::size_t plane = image * channels + c;
        out[plane * out_size + p % out_size] = static_cast<C>(
            sample(in.data() + plane * in_size, std::span(taps).first(axes), lengths));
      }
    }
    out.finish();
    return {};
  });
}

constexpr std::array kAffineAttrs = {AttrSpec{"align_corners", AttrKind::kU8}};

/// theta [B, r, r+1], size i64 [r+2] = B, C, out... -> [B, out..., r].
Result<std::vector<TensorSpec>> infer_affine(const Attrs&, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_list(in, 1));
  const Dim& r = in[0].dims[1];
  if (!r.is_constant() || r.constant() < 2 || r.constant() > 3) {
    return fail(rules::bad_shape(dims_text(in[0].dims), "2 or 3 rows"));
  }
  CYB_TRY(rules::want_dims(in, 0, std::array{in[0].dims[0], r, r + Dim(1)}));
  CYB_TRY(rules::want_dims(in, 1, std::array{r + Dim(2)}));
  std::vector<Dim> dims(static_cast<std::size_t>(r.constant()) + 2, Dim::anonymous());
  dims.front() = in[0].dims[0];
  dims.back() = r;
  if (const auto* size = rules::value_of(in, 1))
    std::copy(size->begin() + 2, size->end(), dims.begin() + 1);
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_affine(const RefCall& call) {
  const Shape& y = call.outputs[0].shape;
  const std::size_t r = y.rank() - 2;
  const bool align = call.attrs.i(0) != 0;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> theta(call.inputs[0]);
    ref::Outputs<C> out(call.outputs[0]);
    ref::for_each_index(y, [&](std::size_t i, const ref::Index& at) {
      const C* row = theta.data() + (at[0] * r + at[r + 1]) * (r + 1);
      double sum = static_cast<double>(row[r]);
      for (std::size_t k = 0; k < r; ++k) {  // innermost axis first
        const std::size_t axis = r - k;
        const auto n = static_cast<double>(y[axis]), o = static_cast<double>(at[axis]);
        const double x =
            align ? (n > 1.0 ? 2.0 * o / (n - 1.0) - 1.0 : 0.0) : (2.0 * o + 1.0) / n - 1.0;
        sum += static_cast<double>(row[k]) * x;
      }
      out[i] = static_cast<C>(sum);
    });
    out.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_GridSample() {
  return {.attrs = kAttrs, .infer = infer_grid_sample, .reference = reference_grid_sample};
}
OpImpl impl_AffineGrid() {
  return {.attrs = kAffineAttrs, .infer = infer_affine, .reference = reference_affine};
}

}  // namespace cyb
