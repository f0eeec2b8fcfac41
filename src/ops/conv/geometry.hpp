// Sliding windows over 1 to 3 spatial axes: what convolutions and pools share. Lists hold one entry
// per axis, outermost first; pads are all befores, then all afters.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb::conv {

using rules::Specs;
using List = std::vector<std::int64_t>;

enum AutoPad : std::int64_t { kExplicit = 0, kSameUpper = 1, kSameLower = 2, kValid = 3 };

/// Window attributes; empty strides, dilations and pads mean 1, 1 and 0.
struct Window {
  List kernel, strides, dilations, pads;
  std::int64_t auto_pad = kExplicit;
  bool ceil = false;
  std::size_t axes() const noexcept { return kernel.size(); }
  std::int64_t stride(std::size_t a) const noexcept { return strides.empty() ? 1 : strides[a]; }
  std::int64_t dilation(std::size_t a) const noexcept {
    return dilations.empty() ? 1 : dilations[a];
  }
  /// Positions that one window covers.
  std::int64_t span(std::size_t a) const noexcept { return dilation(a) * (kernel[a] - 1) + 1; }
};

/// Lengths of the lists and ranges of their values; G04 with the field's name.
Result<void> check_window(const Window& window, std::size_t axes);

/// Output length along axis a, symbols included. G10 where no window fits.
Result<Dim> output_dim(const Window& window, std::size_t a, const Dim& length);

/// One axis of a run, padded to three axes with ones in front.
struct Axis {
  std::int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
};
using Axes = std::array<Axis, 3>;

/// Geometry of a run: `in` and `out` are spatial lengths, outermost first.
Axes axes_of(const Window& window, std::span<const std::int64_t> in,
             std::span<const std::int64_t> out);

/// Position of tap k of output o along an axis; may lie outside 0..in-1.
inline std::int64_t tap(const Axis& axis, std::int64_t o, std::int64_t k) noexcept {
  return o * axis.stride - axis.before + k * axis.dilation;
}
inline bool inside(const Axis& axis, std::int64_t at) noexcept {
  return at >= 0 && at < axis.in;
}

/// A convolution of one run: x [B, G·C, in...], W [G·O, C, kernel...], y [B, G·O, out...].
struct Problem {
  Axes axes;
  std::size_t batch, groups, in_channels, out_channels;  // channels per group
  std::size_t in_size() const noexcept {
    return static_cast<std::size_t>(axes[0].in * axes[1].in * axes[2].in);
  }
  std::size_t out_size() const noexcept {
    return static_cast<std::size_t>(axes[0].out * axes[1].out * axes[2].out);
  }
  std::size_t volume() const noexcept {
    return static_cast<std::size_t>(axes[0].kernel * axes[1].kernel * axes[2].kernel);
  }
};

/// Shape rule of y for x, W [O, C/g, k...] and b [O]?, with the kernel taken from W.
Result<std::vector<TensorSpec>> infer_conv(Specs in, Window window, std::int64_t groups);
/// The kernel lengths of a weight that are constant; G10 otherwise.
Result<List> kernel_of(const TensorSpec& weight);
Problem problem_of(const Shape& x, const Shape& w, const Shape& y, const Window& window,
                   std::size_t groups);

/// sum over (channel, taps) in the reference order; a padded tap keeps its place and adds nothing.
template <class C>
C convolve_at(const Problem& p, const C* x, const C* w, const std::array<std::int64_t, 3>& o) {
  ref::Sum<C> sum;
  std::size_t k = 0;
  const auto& a = p.axes;
  for (std::size_t c = 0; c < p.in_channels; ++c) {
    const C* plane = x + c * p.in_size();
    for (std::int64_t i = 0; i < a[0].kernel; ++i) {
      const std::int64_t z = tap(a[0], o[0], i);
      for (std::int64_t j = 0; j < a[1].kernel; ++j) {
        const std::int64_t r = tap(a[1], o[1], j);
        const bool row = inside(a[0], z) && inside(a[1], r);
        for (std::int64_t l = 0; l < a[2].kernel; ++l, ++k) {
          const std::int64_t q = tap(a[2], o[2], l);
          if (row && inside(a[2], q))
            sum.add_at(k, ref::multiply(plane[(z * a[1].in + r) * a[2].in + q], w[k]));
        }
      }
    }
  }
  return sum.value();
}

/// store(at, o, sum) for every output, at its offset in y; channels are shared among the threads.
template <class C, class Store>
void convolve(const Problem& p, const C* x, const C* w, ThreadPool* pool, Store store) {
  const std::size_t k = p.in_channels * p.volume(), channels = p.groups * p.out_channels;
  const std::size_t planes = p.batch * channels;
  ref::parallel(pool, planes, planes * p.out_size() * k, [&](std::size_t begin, std::size_t end) {
    for (std::size_t n = begin; n < end; ++n) {
      const std::size_t o = n % channels, group = o / p.out_channels;
      const C* plane = x + (n / channels * p.groups + group) * p.in_channels * p.in_size();
      const auto& a = p.axes;
      for (std::size_t i = 0; i < p.out_size(); ++i) {
        const auto flat = static_cast<std::int64_t>(i);
        const std::array at = {flat / (a[1].out * a[2].out), flat / a[2].out % a[1].out,
                               flat % a[2].out};
        store(n * p.out_size() + i, o, convolve_at(p, plane, w + o * k, at));
      }
    }
  });
}

/// x * W (+ b) for f16, f32 and f64 tensors.
Result<void> run_conv(const RefCall& call, const Window& window, std::int64_t groups);

}  // namespace cyb::conv
