// Steps over planes [B, C, ...] in f32: pools, pads, resampling by copies and by two taps.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "backends/cpu/steps_elements.hpp"
#include "ops/spatial/resize.hpp"

namespace cyb::cpu {
namespace {

using conv::Axes;
using conv::Axis;

/// Outputs [lo, hi) of an axis whose tap is inside.
std::pair<std::int64_t, std::int64_t> inside_of(const Axis& a, std::int64_t tap) noexcept {
  const std::int64_t at = tap * a.dilation - a.before;  // position of output 0
  const std::int64_t lo = at >= 0 ? 0 : std::min(a.out, (-at + a.stride - 1) / a.stride);
  const std::int64_t room = a.in - at;
  const std::int64_t hi = room <= 0 ? 0 : std::min(a.out, (room + a.stride - 1) / a.stride);
  return {lo, std::max(lo, hi)};
}

/// Largest tap and where it is: the first of equals, NaN before all.
class MaxPoolStep final : public PlainStep {
 public:
  MaxPoolStep(const Step& step, const Axes& axes, const Build& build)
      : a_(axes),
        x_(step.inputs[0]),
        y_(step.outputs[0]),
        at_(step.outputs.size() > 1 && build.is_read(step.outputs[1]) ? step.outputs[1]
                                                                      : Operand{}) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto lines = static_cast<std::size_t>(a_[0].out * a_[1].out);
    const auto width = static_cast<std::size_t>(a_[2].out);
    const std::int64_t plane_size = a_[0].in * a_[1].in * a_[2].in;
    const std::size_t planes = run.elements(y_) / (lines * width);
    const bool indices = at_.kind != Operand::Kind::kNone;
    for (Share s(planes * lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::int64_t base = static_cast<std::int64_t>(s.begin / lines) * plane_size;
      auto* where = indices ? reinterpret_cast<std::int64_t*>(run.arena + at_.offset) : nullptr;
      const Line line{run.f32(x_), base, static_cast<std::int64_t>(s.begin % lines),
                      run.out(y_) + s.begin * width, where + (indices ? s.begin * width : 0)};
      indices ? walk<true>(line) : walk<false>(line);
    }
  }

 private:
  struct Line {
    const float* x;
    std::int64_t base, at;  // offset of the plane; number of the line in it
    float* y;
    std::int64_t* where;
  };

  template <bool kIndices>
  void walk(const Line& line) const noexcept {
    std::fill_n(line.y, a_[2].out, -std::numeric_limits<float>::infinity());
    if (kIndices) std::fill_n(line.where, a_[2].out, std::int64_t{-1});
    for (std::int64_t i = 0; i < a_[0].kernel; ++i) {
      const std::int64_t z = conv::tap(a_[0], line.at / a_[1].out, i);
      if (!conv::inside(a_[0], z)) continue;
      for (std::int64_t j = 0; j < a_[1].kernel; ++j) {
        const std::int64_t r = conv::tap(a_[1], line.at % a_[1].out, j);
        if (!conv::inside(a_[1], r)) continue;
        const std::int64_t row = line.base + (z * a_[1].in + r) * a_[2].in;
        for (std::int64_t l = 0; l < a_[2].kernel; ++l)
          kIndices ? tap_with_index(line, row, l) : tap(line, row, l);
      }
    }
    for (std::int64_t o = 0; kIndices && o < a_[2].out; ++o)
      line.where[o] = line.where[o] < 0 ? line.base : line.where[o];
  }

  void tap(const Line& line, std::int64_t row, std::int64_t l) const noexcept {
    const auto [lo, hi] = inside_of(a_[2], l);
    const float* from = line.x + row + (l * a_[2].dilation - a_[2].before);
    float* y = line.y;
    const auto larger = [](float best, float v) { return v > best || v != v ? v : best; };
    if (a_[2].stride == 1) {
      for (std::int64_t o = lo; o < hi; ++o) y[o] = larger(y[o], from[o]);
    } else {
      for (std::int64_t o = lo; o < hi; ++o) y[o] = larger(y[o], from[o * a_[2].stride]);
    }
  }

  void tap_with_index(const Line& line, std::int64_t row, std::int64_t l) const noexcept {
    const auto [lo, hi] = inside_of(a_[2], l);
    const std::int64_t from = row + l * a_[2].dilation - a_[2].before;
    for (std::int64_t o = lo; o < hi; ++o) {
      const std::int64_t i = from + o * a_[2].stride;
      const float v = line.x[i], best = line.y[o];
      // NaN stays once it is there; the first tap of a window counts whatever it is.
      const bool better = v > best || ((line.where[o] < 0 || v != v) && best == best);
      line.y[o] = better ? v : best;
      line.where[o] = better ? i : line.where[o];
    }
  }

  Axes a_;
  Operand x_, y_, at_;
};

/// Mean of the taps that are inside, or in the declared padding too (`count_pad`).
class AvgPoolStep final : public PlainStep {
 public:
  AvgPoolStep(const Step& step, const Axes& axes, bool count_pad)
      : a_(axes), x_(step.inputs[0]), y_(step.outputs[0]) {
    for (std::size_t d = 0; d < 3; ++d) {
      for (std::int64_t o = 0; o < a_[d].out; ++o) counts_[d].push_back(taps_of(d, o, count_pad));
    }
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto lines = static_cast<std::size_t>(a_[0].out * a_[1].out);
    const auto width = static_cast<std::size_t>(a_[2].out);
    const std::int64_t plane_size = a_[0].in * a_[1].in * a_[2].in;
    const std::size_t planes = run.elements(y_) / (lines * width);
    for (Share s(planes * lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const float* plane = run.f32(x_) + static_cast<std::int64_t>(s.begin / lines) * plane_size;
      line(plane, static_cast<std::int64_t>(s.begin % lines), run.out(y_) + s.begin * width);
    }
  }

 private:
  float taps_of(std::size_t axis, std::int64_t position, bool count_pad) const {
    const Axis& a = a_[axis];
    float n = 0;
    for (std::int64_t k = 0; k < a.kernel; ++k) {
      const std::int64_t at = conv::tap(a, position, k);
      const bool counts = count_pad ? at >= -a.before && at < a.in + a.after : conv::inside(a, at);
      n += counts ? 1.0f : 0.0f;
    }
    return n;
  }

  void line(const float* plane, std::int64_t at, float* y) const noexcept {
    const std::int64_t z0 = at / a_[1].out, r0 = at % a_[1].out;
    std::fill_n(y, a_[2].out, 0.0f);
    for (std::int64_t i = 0; i < a_[0].kernel; ++i) {
      const std::int64_t z = conv::tap(a_[0], z0, i);
      if (!conv::inside(a_[0], z)) continue;
      for (std::int64_t j = 0; j < a_[1].kernel; ++j) {
        const std::int64_t r = conv::tap(a_[1], r0, j);
        if (!conv::inside(a_[1], r)) continue;
        const float* row = plane + (z * a_[1].in + r) * a_[2].in;
        for (std::int64_t l = 0; l < a_[2].kernel; ++l) {
          const auto [lo, hi] = inside_of(a_[2], l);
          const std::int64_t shift = l * a_[2].dilation - a_[2].before;
          for (std::int64_t o = lo; o < hi; ++o) y[o] += row[o * a_[2].stride + shift];
        }
      }
    }
    const float lines =
        counts_[0][static_cast<std::size_t>(z0)] * counts_[1][static_cast<std::size_t>(r0)];
    for (std::size_t o = 0; o < counts_[2].size(); ++o) y[o] /= lines * counts_[2][o];
  }

  Axes a_;
  Operand x_, y_;
  std::array<std::vector<float>, 3> counts_;  // taps along an axis of each output
};

/// x copied into a constant, or with its edges repeated. Trailing dimensions without pads are one
/// value of several floats.
class PadStep final : public PlainStep {
 public:
  using Dims = std::array<std::int64_t, Shape::kMaxRank>;
  PadStep(const Step& step, const Dims& before, Operand value, bool edge)
      : x_(step.inputs[0]), y_(step.outputs[0]), value_(value), before_(before), edge_(edge) {
    const Shape &in = x_.shape, &out = y_.shape;
    last_ = out.rank() - 1;
    for (; last_ > 0 && in[last_] == out[last_]; --last_)
      unit_ *= static_cast<std::size_t>(out[last_]);
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const Shape &in = x_.shape, &out = y_.shape;
    const float value = value_.kind == Operand::Kind::kNone ? 0.0f : *run.f32(value_);
    const std::size_t width = static_cast<std::size_t>(out[last_]) * unit_;
    const std::size_t rows = run.elements(y_) / width;
    for (Share s(rows, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      auto rest = static_cast<std::int64_t>(s.begin);
      std::int64_t from = 0, stride = 1;
      bool is_inside = true;
      for (std::size_t d = last_; d-- > 0; rest /= out[d]) {
        std::int64_t at = rest % out[d] - before_[d];
        if (edge_) at = std::clamp<std::int64_t>(at, 0, in[d] - 1);
        is_inside = is_inside && at >= 0 && at < in[d];
        from += at * stride;
        stride *= in[d];
      }
      float* y = run.out(y_) + s.begin * width;
      if (!is_inside) {
        std::fill_n(y, width, value);
        continue;
      }
      const std::size_t n = static_cast<std::size_t>(in[last_]) * unit_;
      row(run.f32(x_) + static_cast<std::size_t>(from) * n, n, value, y, width);
    }
  }

 private:
  void row(const float* x, std::size_t n, float value, float* y, std::size_t width) const noexcept {
    const std::size_t begin = static_cast<std::size_t>(before_[last_]) * unit_, end = begin + n;
    for (std::size_t i = 0; edge_ && i < begin; i += unit_) std::copy_n(x, unit_, y + i);
    if (!edge_) std::fill_n(y, begin, value);
    std::memcpy(y + begin, x, n * sizeof(float));
    for (std::size_t i = end; edge_ && i < width; i += unit_)
      std::copy_n(x + n - unit_, unit_, y + i);
    if (!edge_) std::fill(y + end, y + width, value);
  }

  Operand x_, y_, value_;
  Dims before_;
  bool edge_;
  std::size_t last_, unit_ = 1;  // dimension of the rows; floats of a value
};

/// The last two dimensions resampled: y = sum of wy * (sum of wx * x), one or two taps each.
class ResizeStep final : public PlainStep {
 public:
  ResizeStep(const Step& step, ResizeTaps rows, ResizeTaps columns)
      : x_(step.inputs[0]),
        y_(step.outputs[0]),
        rows_(std::move(rows)),
        columns_(std::move(columns)) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t height = rows_.size(), width = columns_.size(), rank = x_.shape.rank();
    const auto in_w = static_cast<std::size_t>(x_.shape[rank - 1]);
    const std::size_t in_h = rank > 1 ? static_cast<std::size_t>(x_.shape[rank - 2]) : 1;
    for (Share s(run.rows(y_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const ResizeTap& row = rows_[s.begin % height];
      const float* plane = run.f32(x_) + s.begin / height * in_h * in_w;
      const float *a = plane + row.first * in_w, *b = plane + row.second * in_w;
      float* y = run.out(y_) + s.begin * width;
      if (row.second_weight == 0.0 && row.first_weight == 1.0 && exact_) {
        for (std::size_t i = 0; i < width; ++i) y[i] = a[columns_[i].first];
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) {
        const ResizeTap& c = columns_[i];
        y[i] =
            static_cast<float>(row.first_weight * along(a, c) +
                               (row.second_weight == 0.0 ? 0.0 : row.second_weight * along(b, c)));
      }
    }
  }
  void set_exact(bool exact) { exact_ = exact; }

 private:
  static double along(const float* row, const ResizeTap& c) noexcept {
    double sum = c.first_weight * static_cast<double>(row[c.first]);
    if (c.second_weight != 0.0) sum += c.second_weight * static_cast<double>(row[c.second]);
    return sum;
  }

  Operand x_, y_;
  ResizeTaps rows_, columns_;
  bool exact_ = false;  // columns are copies
};

bool copies(const ResizeTaps& taps) {
  return std::ranges::all_of(
      taps, [](const ResizeTap& t) { return t.first_weight == 1.0 && t.second_weight == 0.0; });
}

TensorView known(const Step& step, std::size_t i) {
  if (i >= step.inputs.size() || step.inputs[i].kind != Operand::Kind::kWeight) return {};
  TensorView view = cpu_weight(step.inputs[i])->source();
  view.shape = step.inputs[i].shape;
  return view;
}
bool unknown(const Step& step, std::size_t i) {
  return i < step.inputs.size() && step.inputs[i].kind != Operand::Kind::kNone &&
         step.inputs[i].kind != Operand::Kind::kWeight;
}

Result<StepPtr> make_resize(const Step& step) {
  if (unknown(step, 1) || unknown(step, 2) || unknown(step, 3)) return StepPtr();
  const Operand& x = step.inputs[0];
  if (x.shape.count() == 0 || step.outputs[0].shape.count() == 0) return StepPtr();
  const std::array views = {TensorView{x.dtype, x.shape, nullptr}, known(step, 1), known(step, 2),
                            known(step, 3)};
  CYB_ASSIGN(auto taps, resize_taps(step.op.attrs, views));
  if (!taps || taps->size() < 2) return StepPtr();
  ResizeTaps columns = std::move(taps->back()), rows = std::move((*taps)[taps->size() - 2]);
  const bool exact = copies(columns);
  auto made = std::make_unique<ResizeStep>(step, std::move(rows), std::move(columns));
  made->set_exact(exact);
  return StepPtr(std::move(made));
}

Result<StepPtr> make_pad(const Step& step) {
  const std::int64_t mode = step.op.attrs.i(0);  // 0 constant, 2 edge
  if ((mode != 0 && mode != 2) || unknown(step, 1) || unknown(step, 3)) return StepPtr();
  const std::size_t rank = step.inputs[0].shape.rank();
  if (step.inputs[0].shape.count() == 0 || rank == 0) return StepPtr();
  const TensorView pads = known(step, 1), axes = known(step, 3);
  const std::vector<std::int64_t> amounts = ref::integers(pads), on = ref::integers(axes);
  const std::size_t n = axes.present() ? on.size() : rank;
  if (amounts.size() != 2 * n || std::ranges::any_of(amounts, [](std::int64_t v) { return v < 0; }))
    return StepPtr();
  PadStep::Dims before{};
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t a = axes.present() ? on[i] : static_cast<std::int64_t>(i);
    before[static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a)] = amounts[i];
  }
  return std::make_unique<PadStep>(step, before,
                                   step.inputs.size() > 2 ? step.inputs[2] : Operand{}, mode == 2);
}

Result<StepPtr> make_pool(const Step& step, Build& build) {
  const Attrs& a = step.op.attrs;
  const bool average = step.op.tag == OpTag::kAvgPool;
  if (step.outputs[0].shape.count() == 0 || step.inputs[0].shape.count() == 0) return StepPtr();
  if (!average && a.i(6) != 0) return StepPtr();
  const conv::Window window{a.list(0), a.list(1), a.list(2), a.list(3), a.i(4), a.i(5) != 0};
  const Axes axes = conv::axes_of(window, step.inputs[0].shape.dims().subspan(2),
                                  step.outputs[0].shape.dims().subspan(2));
  if (average) return std::make_unique<AvgPoolStep>(step, axes, a.i(6) != 0);
  return std::make_unique<MaxPoolStep>(step, axes, build);
}

}  // namespace

Result<StepPtr> make_spatial_step(const Step& step, Build& build) {
  switch (step.op.tag) {
    case OpTag::kMaxPool:
    case OpTag::kAvgPool:
      return make_pool(step, build);
    case OpTag::kResize:
      return make_resize(step);
    default:
      return make_pad(step);
  }
}

}  // namespace cyb::cpu
