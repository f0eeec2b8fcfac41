// ConvTranspose in f32: every input position times the weight gives a column of (channel, tap)
// values, one tile product; then each output adds the values of its taps in order.
#include <algorithm>
#include <cstring>

#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {
namespace {

using conv::Axes;
using conv::Axis;

constexpr std::size_t kBlock = 16;
constexpr std::size_t kBlocks = 8;                         // 16-blocks of positions in an item
constexpr std::size_t kMaxValues = std::size_t{64} << 20;  // of a (sample, group)
constexpr std::size_t kMaxPlanes = 64;                     // (samples, groups): two phases each

struct Transposed {
  Axes axes;
  std::size_t batch, groups, channels, outs, volume, in_size, out_size;
  std::size_t rows() const noexcept { return outs * volume; }
  std::size_t padded() const noexcept { return round_up(in_size, kBlock); }
};

class TransposedStep final : public CpuStep {
 public:
  TransposedStep(const Step& step, const Transposed& shape, Buffer panels, Build& build)
      : s_(shape),
        panels_(std::move(panels)),
        x_(step.inputs[0]),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]) {
    build.want_thread(kBlocks * kBlock * s_.channels * sizeof(float) + 64);
    build.want_shared(s_.rows() * s_.padded() * sizeof(float));
  }

  unsigned phases(const Run&) const noexcept override {
    return static_cast<unsigned>(2 * s_.batch * s_.groups);
  }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    phase % 2 == 0 ? multiply(run, phase / 2, thread) : scatter(run, phase / 2, thread);
  }

 private:
  void multiply(const Run& run, std::size_t plane, unsigned thread) const noexcept {
    auto* columns = reinterpret_cast<float*>(run.thread_scratch[thread]);
    const float* x = run.f32(x_) + plane * s_.channels * s_.in_size;
    const std::size_t blocks = s_.padded() / kBlock, items = (blocks + kBlocks - 1) / kBlocks;
    const std::size_t panel = s_.channels * kTileRows;
    const std::size_t panels = (s_.rows() + kTileRows - 1) / kTileRows;
    for (Share s(items, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t first = s.begin * kBlocks, n = std::min(kBlocks, blocks - first);
      for (std::size_t b = 0; b < n; ++b)
        pack(x, (first + b) * kBlock, columns + b * s_.channels * kBlock);
      run.k->tile({.a = panels_.as<float>() + plane % s_.groups * panels * panel,
                   .packed = true,
                   .a_panel = panel,
                   .a_row = 1,
                   .b = columns,
                   .b_block = s_.channels * kBlock,
                   .rows = s_.rows(),
                   .n_blocks = n,
                   .k = s_.channels,
                   .c = reinterpret_cast<float*>(run.shared) + first * kBlock,
                   .c_row = s_.padded(),
                   .row_bias = nullptr});
    }
  }

  void pack(const float* x, std::size_t first, float* to) const noexcept {
    const std::size_t n = std::min(kBlock, s_.in_size - first);
    for (std::size_t c = 0; c < s_.channels; ++c, to += kBlock) {
      std::memcpy(to, x + c * s_.in_size + first, n * sizeof(float));
      std::fill(to + n, to + kBlock, 0.0f);
    }
  }

  void scatter(const Run& run, std::size_t plane, unsigned thread) const noexcept {
    const Axes& a = s_.axes;
    const auto lines = static_cast<std::size_t>(a[0].out * a[1].out),
               width = static_cast<std::size_t>(a[2].out);
    const std::size_t group = plane % s_.groups;
    for (Share s(s_.outs * lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t o = s.begin / lines;
      const auto at = static_cast<std::int64_t>(s.begin % lines);
      float* y = run.out(y_) + plane * s_.outs * s_.out_size + s.begin * width;
      std::fill_n(y, width, 0.0f);
      const float* values =
          reinterpret_cast<const float*>(run.shared) + o * s_.volume * s_.padded();
      for (std::int64_t i = 0; i < a[0].kernel; ++i) {
        const std::int64_t z = source(a[0], at / a[1].out, i);
        for (std::int64_t j = 0; j < a[1].kernel; ++j) {
          const std::int64_t r = source(a[1], at % a[1].out, j);
          if (z < 0 || r < 0) continue;
          for (std::int64_t l = 0; l < a[2].kernel; ++l) {
            const auto k = static_cast<std::size_t>((i * a[1].kernel + j) * a[2].kernel + l);
            add_tap(values + k * s_.padded() + (z * a[1].in + r) * a[2].in, l, y);
          }
        }
      }
      const float bias =
          bias_.kind == Operand::Kind::kNone ? 0.0f : run.f32(bias_)[group * s_.outs + o];
      for (std::size_t i = 0; i < width; ++i) y[i] += bias;
    }
  }

  /// Input position of tap k of output o, or -1.
  static std::int64_t source(const Axis& a, std::int64_t o, std::int64_t k) noexcept {
    const std::int64_t at = o + a.before - k * a.dilation;
    return at >= 0 && at % a.stride == 0 && at / a.stride < a.in ? at / a.stride : -1;
  }

  void add_tap(const float* row, std::int64_t l, float* y) const noexcept {
    const Axis& a = s_.axes[2];
    // Output q * stride + offset meets input q.
    const std::int64_t offset = l * a.dilation - a.before;
    const std::int64_t lo = offset >= 0 ? 0 : (-offset + a.stride - 1) / a.stride;
    const std::int64_t room = a.out - offset;
    const std::int64_t hi = room <= 0 ? 0 : std::min(a.in, (room + a.stride - 1) / a.stride);
    for (std::int64_t q = lo; q < hi; ++q) y[q * a.stride + offset] += row[q];
  }

  Transposed s_;
  Buffer panels_;
  Operand x_, bias_, y_;
};

/// Rows (out channel, tap) of W [C, O, taps], transposed.
Result<Buffer> pack_weight(const float* w, const Transposed& s) {
  const std::size_t panels = (s.rows() + kTileRows - 1) / kTileRows, panel = s.channels * kTileRows;
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(s.groups * panels * panel * sizeof(float), "cpu"));
  float* to = buffer.as<float>();
  for (std::size_t i = 0; i < s.groups * panels; ++i) {
    const float* group = w + i / panels * s.channels * s.rows();
    for (std::size_t c = 0; c < s.channels; ++c) {
      for (std::size_t r = i % panels * kTileRows; r < (i % panels + 1) * kTileRows; ++r)
        *to++ = r < s.rows() ? group[c * s.rows() + r] : 0.0f;
    }
  }
  return buffer;
}

}  // namespace

Result<StepPtr> make_transposed_step(const Step& step, Build& build) {
  const Operand &x = step.inputs[0], &w = step.inputs[1];
  const Attrs& a = step.op.attrs;
  if (w.kind != Operand::Kind::kWeight || cpu_weight(w)->vector() == nullptr) return StepPtr();
  if (a.i(6) != conv::kExplicit || !a.list(4).empty()) return StepPtr();
  if (x.shape.count() == 0 || step.outputs[0].shape.count() == 0) return StepPtr();
  CYB_ASSIGN(const conv::List kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  const conv::Window window{kernel, a.list(0), a.list(1), {}, conv::kExplicit, false};
  const Shape& y = step.outputs[0].shape;
  Transposed s{.axes = conv::axes_of(window, x.shape.dims().subspan(2), y.dims().subspan(2)),
               .batch = static_cast<std::size_t>(x.shape[0]),
               .groups = static_cast<std::size_t>(a.i(5)),
               .channels = static_cast<std::size_t>(x.shape[1] / a.i(5)),
               .outs = static_cast<std::size_t>(w.shape[1]),
               .volume = 1,
               .in_size = 1,
               .out_size = 1};
  for (std::size_t d = 0; d < 3; ++d) {
    const std::size_t axis = d + kernel.size() - 3;
    if (d + kernel.size() >= 3 && !a.list(2).empty()) s.axes[d].before = a.list(2)[axis];
    s.volume *= static_cast<std::size_t>(s.axes[d].kernel);
    s.in_size *= static_cast<std::size_t>(s.axes[d].in);
    s.out_size *= static_cast<std::size_t>(s.axes[d].out);
  }
  if (s.rows() * s.padded() > kMaxValues || s.batch * s.groups > kMaxPlanes) return StepPtr();
  CYB_ASSIGN(Buffer panels, pack_weight(cpu_weight(w)->vector(), s));
  build.kept_bytes += panels.size();
  return std::make_unique<TransposedStep>(step, s, std::move(panels), build);
}

}  // namespace cyb::cpu
