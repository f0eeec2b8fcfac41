// ConvTranspose over channels-last tensors where windows lie side by side (kernel = stride, no
// pads): every input pixel times the weight is a window of outputs, so a line of input pixels is
// one product whose rows are then put side by side.
#include <algorithm>
#include <cstring>

#include "backends/cpu/conv_epilogue.hpp"
#include "backends/cpu/direct_taps.hpp"
#include "backends/cpu/layout.hpp"

namespace cyb::cpu {
namespace {

/// The product of a pixel: one tap, windows as outputs.
conv::Problem product_of(const Step& step) {
  const Shape x = channels_first(step.inputs[0].shape);
  const Operand& w = step.inputs[1];
  conv::Problem p{{},
                  static_cast<std::size_t>(x[0]),
                  1,
                  static_cast<std::size_t>(x[1]),
                  static_cast<std::size_t>(w.shape.count() / x[1])};
  for (std::size_t d = 2; d < x.rank(); ++d) {
    conv::Axis& axis = p.axes[3 - x.rank() + d];
    axis.in = axis.out = x[d];
  }
  return p;
}

class WindowsStep final : public PlainStep {
 public:
  WindowsStep(const Step& step, ConvEpilogue epilogue, Buffer panels, Build& build)
      : p_(product_of(step)),
        taps_(p_),
        epilogue_(std::move(epilogue)),
        panels_(std::move(panels)),
        x_(step.inputs[0]),
        y_(step.outputs[0]),
        channels_(static_cast<std::size_t>(y_.shape.back())) {
    const Shape& w = step.inputs[1].shape;
    for (std::size_t d = 2; d < w.rank(); ++d)
      kernel_[3 - w.rank() + d] = static_cast<std::size_t>(w[d]);
    const std::size_t windows = p_.out_channels / channels_;
    spread(epilogue_.scale(), windows, scale_);
    spread(epilogue_.bias(), windows, bias_);
    const std::size_t tiles = DirectTaps::tiles_of(width());
    tables_ = round_up(tiles * sizeof(DirectTile), 64) +
              round_up(taps_.pointers(tiles) * sizeof(float*), 64);
    products_ = round_up(width() * p_.out_channels * sizeof(float), 64);
    build.want_thread(tables_ + products_ + epilogue_.scratch_bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t lines = p_.in_size() / width();
    for (Share s(p_.batch * lines, thread, run.n_threads); s.begin < s.end; ++s.begin)
      line(run, s.begin / lines, s.begin % lines, run.thread_scratch[thread]);
  }

 private:
  std::size_t width() const noexcept { return static_cast<std::size_t>(p_.axes[2].in); }

  /// `values` once for each tap of a window.
  void spread(const float* values, std::size_t windows, std::vector<float>& to) const {
    if (values == nullptr) return;
    to.assign(windows * channels_ + 2 * kDirectOutputs, 0.0f);
    for (std::size_t i = 0; i < windows; ++i)
      std::copy_n(values, channels_, to.begin() + static_cast<std::ptrdiff_t>(i * channels_));
  }

  void line(const Run& run, std::size_t sample, std::size_t at, std::byte* scratch) const noexcept {
    auto* tiles = reinterpret_cast<DirectTile*>(scratch);
    const std::size_t n_tiles = DirectTaps::tiles_of(width());
    auto** rows =
        reinterpret_cast<const float**>(scratch + round_up(n_tiles * sizeof(DirectTile), 64));
    auto* windows = reinterpret_cast<float*>(scratch + tables_);
    taps_.fill(run.f32(x_) + sample * p_.in_size() * p_.in_channels, at * width(), width(), tiles,
               rows);
    for (const DirectSlice& s : taps_.slices()) {
      run.k->direct({.w = panels_.as<float>() + s.first_channel * kDirectOutputs,
                     .w_block = p_.in_channels * kDirectOutputs,
                     .tiles = tiles,
                     .n_tiles = n_tiles,
                     .offsets = taps_.offsets(),
                     .merge = 1,
                     .first_tap = 0,
                     .n_taps = 1,
                     .first_channel = s.first_channel,
                     .n_channels = s.n_channels,
                     .y = windows,
                     .y_pixel = p_.out_channels,
                     .n_outputs = p_.out_channels,
                     .first = &s == &taps_.slices().front(),
                     .last = &s == &taps_.slices().back(),
                     .scale = scale_.empty() ? nullptr : scale_.data(),
                     .bias = bias_.empty() ? nullptr : bias_.data(),
                     .relu = epilogue_.relu()});
    }
    put(run, sample, at, windows, scratch + tables_ + products_);
  }

  /// Rows of windows [tap][C] to lines of the output.
  void put(const Run& run, std::size_t sample, std::size_t at, const float* windows,
           std::byte* room) const noexcept {
    const auto height = static_cast<std::size_t>(p_.axes[1].in);
    const auto depth = static_cast<std::size_t>(p_.axes[0].in);
    const std::size_t z = at / height, r = at % height, row = kernel_[2] * channels_;
    for (std::size_t i = 0; i < kernel_[0]; ++i) {
      for (std::size_t j = 0; j < kernel_[1]; ++j) {
        const std::size_t plane = (sample * depth + z) * kernel_[0] + i;
        const std::size_t first = ((plane * height + r) * kernel_[1] + j) * width() * row;
        const float* from = windows + (i * kernel_[1] + j) * row;
        float* y = run.out(y_) + first;
        for (std::size_t x = 0; x < width(); ++x, from += p_.out_channels, y += row)
          std::memcpy(y, from, row * sizeof(float));
        if (epilogue_.has_ops()) epilogue_.apply(run, room, first, width() * row);
      }
    }
  }

  conv::Problem p_;
  DirectTaps taps_;
  ConvEpilogue epilogue_;
  Buffer panels_;
  Operand x_, y_;
  std::size_t channels_;
  std::array<std::size_t, 3> kernel_{1, 1, 1};
  std::vector<float> scale_, bias_;  // per output of a window
  std::size_t tables_ = 0, products_ = 0;
};

/// [block of 16 of (tap, output)][channel][16] of W [C, O, taps].
Result<Buffer> window_panels(const Step& step) {
  const Shape& w = step.inputs[1].shape;
  const float* values = cpu_weight(step.inputs[1])->vector();
  const auto channels = static_cast<std::size_t>(w[0]), outs = static_cast<std::size_t>(w[1]);
  const std::size_t all = static_cast<std::size_t>(w.count()) / channels, taps = all / outs;
  const std::size_t blocks = (all + kDirectOutputs - 1) / kDirectOutputs;
  CYB_ASSIGN(Buffer buffer,
             Buffer::allocate(blocks * channels * kDirectOutputs * sizeof(float), "cpu"));
  float* to = buffer.as<float>();
  for (std::size_t n = 0; n < all; ++n) {
    const std::size_t tap = n / outs, o = n % outs;
    float* lane = to + n / kDirectOutputs * channels * kDirectOutputs + n % kDirectOutputs;
    for (std::size_t c = 0; c < channels; ++c)
      lane[c * kDirectOutputs] = values[(c * outs + o) * taps + tap];
  }
  return buffer;
}

}  // namespace

bool has_windows_apart(const Step& step) {
  const Attrs& a = step.op.attrs;  // strides, dilations, pads, output_padding, output_shape, groups
  const Shape &x = step.inputs[0].shape, &w = step.inputs[1].shape, &y = step.outputs[0].shape;
  if (a.i(5) != 1 || a.i(6) != conv::kExplicit || !a.list(4).empty()) return false;
  const auto other_than = [](const std::vector<std::int64_t>& list, std::int64_t value) {
    return std::ranges::any_of(list, [&](std::int64_t v) { return v != value; });
  };
  if (other_than(a.list(1), 1) || other_than(a.list(2), 0)) return false;
  if (w.rank() != x.rank() || w.count() == 0) return false;
  for (std::size_t d = 2; d < w.rank(); ++d) {
    const std::int64_t stride = a.list(0).empty() ? 1 : a.list(0)[d - 2];
    if (w[d] != stride || y[d] != x[d] * stride) return false;
  }
  return true;
}

Result<StepPtr> make_windows_step(const Step& step, Build& build) {
  const float* bias = step.inputs.size() > 2 && step.inputs[2].kind != Operand::Kind::kNone
                          ? cpu_weight(step.inputs[2])->vector()
                          : nullptr;
  CYB_ASSIGN(Buffer panels, window_panels(step));
  build.kept_bytes += panels.size();
  const auto channels = static_cast<std::size_t>(step.outputs[0].shape.back());
  return std::make_unique<WindowsStep>(step, ConvEpilogue(step, bias, channels), std::move(panels),
                                       build);
}

}  // namespace cyb::cpu
