// Convolutions of 1 to 3 axes in f32, NCHW. Patches of a tile of outputs are gathered as rows and
// multiplied with the weight's panels; where a group has one channel the taps are summed directly.
// Every output is one sum in an order that its own shape decides.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/step.hpp"
#include "ops/conv/geometry.hpp"

namespace cyb::cpu {
namespace {

using conv::Axes;
using conv::Axis;

constexpr std::size_t kSliceValues = 256;            // K of one slice of a panel
constexpr std::size_t kPatchBytes = 256 * 1024;      // patches of a tile stay in the cache
constexpr std::size_t kMinTile = 16, kMaxTile = 96;  // outputs

/// Taps [lo, hi) of output position `o` that are inside.
struct Taps {
  std::int64_t lo, hi, first;  // first: position of tap lo
  Taps(const Axis& a, std::int64_t o) noexcept {
    const std::int64_t begin = o * a.stride - a.before;
    lo = begin >= 0 ? 0 : (-begin + a.dilation - 1) / a.dilation;
    const std::int64_t room = a.in - begin;
    hi = room <= 0 ? 0 : std::min(a.kernel, (room + a.dilation - 1) / a.dilation);
    lo = std::min(lo, hi);
    first = begin + lo * a.dilation;
  }
};

struct ConvShape {
  conv::Problem p;
  std::size_t k, k_padded, panels, tile, tiles;

  ConvShape(const conv::Problem& problem, unsigned n_threads) : p(problem) {
    k = p.in_channels * p.volume();
    k_padded = round_up(k, 4);
    panels = n_panels(p.out_channels);
    const std::size_t fits = kPatchBytes / (k_padded * sizeof(float));
    const std::size_t share = p.batch * p.groups * p.out_size() / (4 * std::size_t{n_threads}) + 1;
    tile = round_up(std::clamp(std::min(fits, share), kMinTile, kMaxTile), 4);
    tiles = (p.out_size() + tile - 1) / tile;
  }
  bool pointwise() const noexcept {
    return p.volume() == 1 && std::ranges::all_of(p.axes, [](const Axis& a) {
             return a.stride == 1 && a.before == 0 && a.after == 0;
           });
  }
};

/// Outputs [first, first + n) of one (sample, group).
struct Tile {
  std::size_t plane, first, n;
};

/// Memory of one thread.
struct Scratch {
  float *patches, *slice, *acc, *out;
  static std::size_t bytes(const ConvShape& s) {
    return (s.tile * s.k_padded + kSliceValues * kPanelRows + s.tile * (64 + kPanelRows)) *
               sizeof(float) +
           64;
  }
  Scratch(const ConvShape& s, std::byte* base) noexcept {
    patches = reinterpret_cast<float*>(base);
    slice = patches + round_up(s.tile * s.k_padded, 16);
    acc = slice + kSliceValues * kPanelRows;
    out = acc + s.tile * 64;
  }
};

class ConvStep final : public CpuStep {
 public:
  ConvStep(const Step& step, const ConvShape& shape, std::shared_ptr<const Buffer> panels,
           Build& build)
      : s_(shape),
        panels_(std::move(panels)),
        x_(step.inputs[0]),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]),
        counter_(build.counter()) {
    build.want_thread(Scratch::bytes(s_));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const Scratch scratch(s_, run.thread_scratch[thread]);
    const std::size_t items = s_.p.batch * s_.p.groups * s_.tiles;
    for (std::size_t i;
         (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      const std::size_t first = i % s_.tiles * s_.tile;
      item(run, {i / s_.tiles, first, std::min(s_.tile, s_.p.out_size() - first)}, scratch);
    }
  }

 private:
  void item(const Run& run, const Tile& tile, const Scratch& scratch) const noexcept {
    const auto [plane, first, n] = tile;
    const float* x = run.f32(x_) + plane * s_.p.in_channels * s_.p.in_size();
    if (s_.pointwise()) {
      gather_points(x, first, n, scratch.patches);
    } else {
      std::memset(scratch.patches, 0, n * s_.k_padded * sizeof(float));
      for (std::size_t t = 0; t < n; ++t) gather(x, first + t, scratch.patches + t * s_.k_padded);
    }
    const std::size_t panel_size = panel_bytes(PanelFormat::kF32, s_.k);
    const auto* panel = reinterpret_cast<const std::uint8_t*>(panels_->data()) +
                        plane % s_.p.groups * s_.panels * panel_size;
    for (std::size_t p = 0; p < s_.panels; ++p, panel += panel_size) {
      product(run, panel, n, scratch);
      store(run, tile, p * kPanelRows, scratch.out);
    }
  }

  void product(const Run& run, const std::uint8_t* panel, std::size_t n,
               const Scratch& scratch) const noexcept {
    std::memset(scratch.acc, 0, n * 64 * sizeof(float));
    for (std::size_t at = 0; at < s_.k_padded; at += kSliceValues) {
      const std::size_t n_k = std::min(kSliceValues, s_.k_padded - at);
      run.k->dequant[static_cast<std::size_t>(PanelFormat::kF32)](panel, at, n_k, scratch.slice);
      run.k->dot_f32({scratch.slice, n_k / 4, scratch.patches + at, s_.k_padded, n, scratch.acc});
    }
    run.k->finish_f32(scratch.acc, n, scratch.out);
  }

  /// Channels [channel, channel + 16) of the group; `values` [n][16].
  void store(const Run& run, const Tile& tile, std::size_t channel,
             const float* values) const noexcept {
    const std::size_t width = std::min(kPanelRows, s_.p.out_channels - channel);
    const std::size_t first_of_group = tile.plane % s_.p.groups * s_.p.out_channels;
    const float* bias =
        bias_.kind == Operand::Kind::kNone ? nullptr : run.f32(bias_) + first_of_group + channel;
    float* y =
        run.out(y_) + (tile.plane * s_.p.out_channels + channel) * s_.p.out_size() + tile.first;
    for (std::size_t r = 0; r < width; ++r, y += s_.p.out_size()) {
      const float b = bias == nullptr ? 0.0f : bias[r];
      for (std::size_t t = 0; t < tile.n; ++t) y[t] = values[t * kPanelRows + r] + b;
    }
  }

  void gather_points(const float* x, std::size_t first, std::size_t n, float* rows) const noexcept {
    for (std::size_t c = 0; c < s_.k; ++c) {
      const float* from = x + c * s_.p.in_size() + first;
      for (std::size_t t = 0; t < n; ++t) rows[t * s_.k_padded + c] = from[t];
    }
    for (std::size_t t = 0; t < n; ++t) {
      std::fill(rows + t * s_.k_padded + s_.k, rows + (t + 1) * s_.k_padded, 0.0f);
    }
  }

  /// The patch of one output, K = (channel, taps); `row` is zero on entry.
  void gather(const float* x, std::size_t output, float* row) const noexcept {
    const Axes& a = s_.p.axes;
    const auto flat = static_cast<std::int64_t>(output);
    const Taps z(a[0], flat / (a[1].out * a[2].out)), r(a[1], flat / a[2].out % a[1].out),
        q(a[2], flat % a[2].out);
    const auto width = static_cast<std::size_t>(q.hi - q.lo);
    if (width == 0) return;
    for (std::size_t c = 0; c < s_.p.in_channels; ++c) {
      const float* plane = x + c * s_.p.in_size();
      float* taps = row + c * s_.p.volume();
      for (std::int64_t i = z.lo; i < z.hi; ++i) {
        const std::int64_t depth = z.first + (i - z.lo) * a[0].dilation;
        for (std::int64_t j = r.lo; j < r.hi; ++j) {
          const std::int64_t line = r.first + (j - r.lo) * a[1].dilation;
          const float* from = plane + (depth * a[1].in + line) * a[2].in + q.first;
          float* to = taps + (i * a[1].kernel + j) * a[2].kernel + q.lo;
          if (a[2].dilation == 1) {
            for (std::size_t l = 0; l < width; ++l) to[l] = from[l];
          } else {
            for (std::size_t l = 0; l < width; ++l)
              to[l] = from[static_cast<std::int64_t>(l) * a[2].dilation];
          }
        }
      }
    }
  }

  ConvShape s_;
  std::shared_ptr<const Buffer> panels_;
  Operand x_, bias_, y_;
  std::size_t counter_;
};

/// One input channel a group (depthwise): y = sum over taps of w[tap] * x, tap by tap over rows.
class DepthwiseStep final : public CpuStep {
 public:
  DepthwiseStep(const Step& step, const conv::Problem& problem)
      : p_(problem),
        x_(step.inputs[0]),
        w_(step.inputs[1]),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto lines = static_cast<std::size_t>(p_.axes[0].out * p_.axes[1].out);
    const std::size_t channels = p_.groups * p_.out_channels;
    for (Share s(p_.batch * channels * lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t plane = s.begin / lines, o = plane % channels;
      const std::size_t source = plane / channels * p_.groups + o / p_.out_channels;
      float* y = run.out(y_) + s.begin * static_cast<std::size_t>(p_.axes[2].out);
      const float bias = bias_.kind == Operand::Kind::kNone ? 0.0f : run.f32(bias_)[o];
      line(run.f32(x_) + source * p_.in_size(), run.f32(w_) + o * p_.volume(),
           static_cast<std::int64_t>(s.begin % lines), y);
      for (std::int64_t l = 0; l < p_.axes[2].out; ++l) y[l] += bias;
    }
  }

 private:
  /// One row of outputs without bias.
  void line(const float* x, const float* w, std::int64_t at, float* y) const noexcept {
    const Axes& a = p_.axes;
    std::fill_n(y, a[2].out, 0.0f);
    const Taps z(a[0], at / a[1].out), r(a[1], at % a[1].out);
    for (std::int64_t i = z.lo; i < z.hi; ++i) {
      const std::int64_t depth = z.first + (i - z.lo) * a[0].dilation;
      for (std::int64_t j = r.lo; j < r.hi; ++j) {
        const std::int64_t row = r.first + (j - r.lo) * a[1].dilation;
        const float* from = x + (depth * a[1].in + row) * a[2].in;
        const float* taps = w + (i * a[1].kernel + j) * a[2].kernel;
        for (std::int64_t l = 0; l < a[2].kernel; ++l) add_tap(from, taps[l], l, y);
      }
    }
  }

  void add_tap(const float* x, float w, std::int64_t tap, float* y) const noexcept {
    const Axis& a = p_.axes[2];
    const std::int64_t offset = tap * a.dilation - a.before;  // x position of output 0
    const std::int64_t begin = offset >= 0 ? 0 : (-offset + a.stride - 1) / a.stride;
    const std::int64_t room = a.in - offset;
    const std::int64_t end = room <= 0 ? 0 : std::min(a.out, (room + a.stride - 1) / a.stride);
    if (a.stride == 1) {
      for (std::int64_t o = begin; o < end; ++o) y[o] += w * x[o + offset];
    } else {
      for (std::int64_t o = begin; o < end; ++o) y[o] += w * x[o * a.stride + offset];
    }
  }

  conv::Problem p_;
  Operand x_, w_, bias_, y_;
};

conv::Window window_of(const Op& op) {
  return {{}, op.attrs.list(0), op.attrs.list(1), op.attrs.list(2), op.attrs.i(4), false};
}

/// A padded tap meets a zero, which is nothing only where the weight is finite.
bool all_finite(const float* values, std::size_t n) {
  return std::all_of(values, values + n, [](float v) { return std::isfinite(v); });
}

}  // namespace

Result<StepPtr> make_conv_step(const Step& step, Build& build) {
  const Operand& w = step.inputs[1];
  const auto groups = static_cast<std::size_t>(step.op.attrs.i(3));
  conv::Window window = window_of(step.op);
  CYB_ASSIGN(window.kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  const conv::Problem problem =
      conv::problem_of(step.inputs[0].shape, w.shape, step.outputs[0].shape, window, groups);
  if (problem.in_channels == 1) return std::make_unique<DepthwiseStep>(step, problem);
  if (w.kind != Operand::Kind::kWeight || cpu_weight(w)->vector() == nullptr) return StepPtr();
  const ConvShape shape(problem, build.n_threads);
  if (!all_finite(cpu_weight(w)->vector(), groups * problem.out_channels * shape.k))
    return StepPtr();
  CYB_ASSIGN(std::shared_ptr<const Buffer> panels,
             cpu_weight(w)->grouped_panels(groups, problem.out_channels, shape.k));
  return std::make_unique<ConvStep>(step, shape, std::move(panels), build);
}

}  // namespace cyb::cpu
