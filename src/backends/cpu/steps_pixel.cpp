// Max pools, resizes and sums of pixels with channels last: a pixel is a row of channels.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/direct_taps.hpp"
#include "backends/cpu/layout.hpp"
#include "backends/cpu/steps_elements.hpp"
#include "ops/spatial/resize.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kPixels = 48;  // of an item

bool is_sum(OpTag tag) {
  return tag == OpTag::kReduce || tag == OpTag::kReduceSum || tag == OpTag::kReduceMean;
}

/// A pool as a convolution of every channel with itself.
conv::Problem pool_problem(const Step& step) {
  const Attrs& a = step.op.attrs;
  const conv::Window window{a.list(0), a.list(1), a.list(2), a.list(3), a.i(4), a.i(5) != 0};
  const Shape in = channels_first(step.inputs[0].shape),
              out = channels_first(step.outputs[0].shape);
  return {conv::axes_of(window, in.dims().subspan(2), out.dims().subspan(2)),
          static_cast<std::size_t>(in[0]), static_cast<std::size_t>(in[1]), 1, 1};
}

class PixelPoolStep final : public PlainStep {
 public:
  PixelPoolStep(const Step& step, Build& build)
      : p_(pool_problem(step)),
        taps_(p_, -std::numeric_limits<float>::infinity()),
        x_(step.inputs[0]),
        y_(step.outputs[0]) {
    build.want_thread(kTables + taps_.pointers(DirectTaps::tiles_of(kPixels)) * sizeof(float*));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t size = p_.out_size(), cuts = (size + kPixels - 1) / kPixels;
    auto* tiles = reinterpret_cast<DirectTile*>(run.thread_scratch[thread]);
    auto** rows = reinterpret_cast<const float**>(run.thread_scratch[thread] + kTables);
    for (Share s(p_.batch * cuts, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t sample = s.begin / cuts, first = s.begin % cuts * kPixels;
      const std::size_t n = std::min(kPixels, size - first);
      taps_.fill(run.f32(x_) + sample * p_.in_size() * p_.groups, first, n, tiles, rows);
      run.k->max_taps({.w = nullptr,
                       .w_block = 0,
                       .tiles = tiles,
                       .n_tiles = DirectTaps::tiles_of(n),
                       .offsets = taps_.offsets(),
                       .merge = 1,
                       .first_tap = 0,
                       .n_taps = p_.volume(),
                       .first_channel = 0,
                       .n_channels = 1,
                       .y = run.out(y_) + (sample * size + first) * p_.groups,
                       .y_pixel = p_.groups,
                       .n_outputs = p_.groups,
                       .first = true,
                       .last = false,
                       .scale = nullptr,
                       .bias = nullptr,
                       .relu = false});
    }
  }

 private:
  static constexpr std::size_t kTables =
      round_up(DirectTaps::tiles_of(kPixels) * sizeof(DirectTile), 64);

  conv::Problem p_;
  DirectTaps taps_;
  Operand x_, y_;
};

/// Rows and columns of [B, rows, columns, C] with one or two taps each.
class PixelResizeStep final : public PlainStep {
 public:
  PixelResizeStep(const Step& step, ResizeTaps rows, ResizeTaps columns)
      : x_(step.inputs[0]),
        y_(step.outputs[0]),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto channels = static_cast<std::size_t>(x_.shape[3]);
    const auto in_w = static_cast<std::size_t>(x_.shape[2]) * channels;
    const std::size_t in_size = static_cast<std::size_t>(x_.shape[1]) * in_w;
    const std::size_t lines = static_cast<std::size_t>(y_.shape[0]) * rows_.size();
    for (Share s(lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const ResizeTap& row = rows_[s.begin % rows_.size()];
      const float* plane = run.f32(x_) + s.begin / rows_.size() * in_size;
      const float *a = plane + row.first * in_w, *b = plane + row.second * in_w;
      float* y = run.out(y_) + s.begin * columns_.size() * channels;
      for (const ResizeTap& c : columns_) {
        pixel(row, c, a, b, channels, y);
        y += channels;
      }
    }
  }

 private:
  static double along(const float* row, const ResizeTap& c, std::size_t n, std::size_t i) noexcept {
    double sum = c.first_weight * static_cast<double>(row[c.first * n + i]);
    if (c.second_weight != 0.0) sum += c.second_weight * static_cast<double>(row[c.second * n + i]);
    return sum;
  }

  static void pixel(const ResizeTap& row, const ResizeTap& c, const float* a, const float* b,
                    std::size_t n, float* y) noexcept {
    const bool copy = row.second_weight == 0.0 && row.first_weight == 1.0 &&
                      c.second_weight == 0.0 && c.first_weight == 1.0;
    if (copy) {
      std::memcpy(y, a + c.first * n, n * sizeof(float));
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      double sum = row.first_weight * along(a, c, n, i);
      if (row.second_weight != 0.0) sum += row.second_weight * along(b, c, n, i);
      y[i] = static_cast<float>(sum);
    }
  }

  Operand x_, y_;
  ResizeTaps rows_, columns_;
};

/// Sum or mean of all pixels, in chains of kPixelsOfSum.
class PixelSumStep final : public CpuStep {
 public:
  PixelSumStep(const Step& step, bool mean, Build& build)
      : x_(step.inputs[0]),
        y_(step.outputs[0]),
        mean_(mean),
        channels_(static_cast<std::size_t>(x_.shape.back())),
        batch_(static_cast<std::size_t>(x_.shape[0])),
        pixels_(static_cast<std::size_t>(x_.shape.count()) / (batch_ * channels_)),
        cuts_((pixels_ + kPixelsOfSum - 1) / kPixelsOfSum) {
    build.want_shared(batch_ * cuts_ * channels_ * sizeof(float));
  }

  unsigned phases(const Run&) const noexcept override { return 2; }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    phase == 0 ? sum_cuts(run, thread) : sum_all(run, thread);
  }

 private:
  static constexpr std::size_t kPixelsOfSum = 512;

  void sum_cuts(const Run& run, unsigned thread) const noexcept {
    auto* sums = reinterpret_cast<float*>(run.shared);
    for (Share s(batch_ * cuts_, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t first = s.begin % cuts_ * kPixelsOfSum;
      const std::size_t n = std::min(kPixelsOfSum, pixels_ - first);
      const float* x = run.f32(x_) + (s.begin / cuts_ * pixels_ + first) * channels_;
      float* sum = sums + s.begin * channels_;
      std::copy_n(x, channels_, sum);
      for (std::size_t i = 1; i < n; ++i) run.k->add(sum, x + i * channels_, channels_, sum);
    }
  }

  void sum_all(const Run& run, unsigned thread) const noexcept {
    const auto* sums = reinterpret_cast<const float*>(run.shared);
    for (Share s(batch_, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      float* y = run.out(y_) + s.begin * channels_;
      const float* sum = sums + s.begin * cuts_ * channels_;
      std::copy_n(sum, channels_, y);
      for (std::size_t i = 1; i < cuts_; ++i) run.k->add(y, sum + i * channels_, channels_, y);
      for (std::size_t c = 0; mean_ && c < channels_; ++c) y[c] /= static_cast<float>(pixels_);
    }
  }

  Operand x_, y_;
  bool mean_;
  std::size_t channels_, batch_, pixels_, cuts_;
};

/// Mean or sum of all axes behind the channels; nothing for other ops.
std::optional<Reduction> sum_of_pixels(const Step& step, std::size_t rank) {
  if (!is_sum(step.op.tag)) return std::nullopt;
  auto reduction = reduction_of(step);
  if (!reduction) return std::nullopt;
  for (std::int64_t& axis : reduction->axes) axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  std::ranges::sort(reduction->axes);
  if (reduction->axes.size() != rank - 2) return std::nullopt;
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (reduction->axes[d] != static_cast<std::int64_t>(d) + 2) return std::nullopt;
  }
  return reduction;
}

/// Nothing where an input is not stored or the taps are not one or two of the last two axes.
Result<std::optional<std::vector<ResizeTaps>>> taps_of(const Step& step, const Shape& shape) {
  std::array<TensorView, 4> views{};
  views[0] = {DType::kF32, shape, nullptr};
  for (std::size_t i = 1; i < views.size() && i < step.inputs.size(); ++i) {
    const Operand& in = step.inputs[i];
    if (in.kind == Operand::Kind::kNone) continue;
    if (in.kind != Operand::Kind::kWeight) return std::optional<std::vector<ResizeTaps>>();
    views[i] = cpu_weight(in)->source();
    views[i].shape = in.shape;
  }
  return resize_taps(step.op.attrs, views);
}

}  // namespace

bool has_pixel_step(const Step& step, const Plan& plan) {
  const Operand &x = step.inputs[0], &y = step.outputs[0];
  if (x.shape.count() == 0 || y.shape.count() == 0) return false;
  if (step.op.tag == OpTag::kMaxPool) {
    Build build{.k = nullptr, .n_threads = 1, .exact = false, .max_tokens = 0};
    build.plan = &plan;
    return step.op.attrs.i(6) == 0 && x.shape.rank() <= 5 &&
           (step.outputs.size() == 1 || !build.is_read(step.outputs[1]));
  }
  if (is_sum(step.op.tag)) return sum_of_pixels(step, x.shape.rank()).has_value();
  if (x.shape.rank() != 4) return false;
  const auto taps = taps_of(step, x.shape);
  return taps && *taps && (*taps)->size() == 4;
}

Result<StepPtr> make_pixel_step(const Step& step, Build& build) {
  if (step.op.tag == OpTag::kMaxPool) return std::make_unique<PixelPoolStep>(step, build);
  if (const auto sum = sum_of_pixels(step, step.inputs[0].shape.rank()))
    return std::make_unique<PixelSumStep>(step, sum->mean, build);
  CYB_ASSIGN(auto taps, taps_of(step, channels_first(step.inputs[0].shape)));
  if (!taps) return StepPtr();
  return std::make_unique<PixelResizeStep>(step, std::move((*taps)[2]), std::move((*taps)[3]));
}

}  // namespace cyb::cpu
