// Convolutions in rows, for weights that a run computes, with one channel in and out of a group: a
// row of outputs is a sum over its taps, each a row of the input that starts elsewhere. Taps
// outside the input are left out.
#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {
namespace {

using conv::Axes;
using conv::Axis;

/// Outputs [lo, hi) of an axis whose tap is inside.
struct Inside {
  std::int64_t lo, hi;
  Inside(const Axis& a, std::int64_t tap) noexcept {
    const std::int64_t at = tap * a.dilation - a.before;  // position of output 0
    lo = at >= 0 ? 0 : std::min(a.out, (-at + a.stride - 1) / a.stride);
    const std::int64_t room = a.in - at;
    hi = room <= 0 ? 0 : std::min(a.out, (room + a.stride - 1) / a.stride);
    hi = std::max(lo, hi);
  }
};

class DepthwiseStep final : public PlainStep {
 public:
  DepthwiseStep(const Step& step, const conv::Problem& problem, Build& build)
      : p_(problem),
        x_(step.inputs[0]),
        w_(step.inputs[1]),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]) {
    build.want_thread(p_.volume() * (sizeof(float*) + sizeof(float)) + 64);
    const Axis& a = p_.axes[2];
    // Between two of these columns every output has the same taps.
    cuts_ = {0, a.out};
    for (std::int64_t l = 0; l < a.kernel; ++l) {
      const Inside in(a, l);
      cuts_.insert(cuts_.end(), {in.lo, in.hi});
    }
    std::ranges::sort(cuts_);
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto lines = static_cast<std::size_t>(p_.axes[0].out * p_.axes[1].out);
    const std::size_t channels = p_.groups;
    for (Share s(p_.batch * channels * lines, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t plane = s.begin / lines, o = plane % channels;
      const Row row{run.f32(x_) + plane * p_.in_size(), run.f32(w_) + o * p_.volume(),
                    bias_.kind == Operand::Kind::kNone ? 0.0f : run.f32(bias_)[o],
                    static_cast<std::int64_t>(s.begin % lines),
                    run.out(y_) + s.begin * static_cast<std::size_t>(p_.axes[2].out)};
      for (std::size_t c = 0; c + 1 < cuts_.size(); ++c)
        piece(run, row, {cuts_[c], cuts_[c + 1]}, run.thread_scratch[thread]);
    }
  }

 private:
  struct Row {
    const float *x, *w;
    float bias;
    std::int64_t at;  // number of the line in its plane
    float* y;
  };

  /// Outputs [columns.first, columns.second) of a row.
  void piece(const Run& run, const Row& row, std::pair<std::int64_t, std::int64_t> columns,
             std::byte* scratch) const noexcept {
    const Axes& a = p_.axes;
    auto** x = reinterpret_cast<const float**>(scratch);
    auto* w = reinterpret_cast<float*>(x + p_.volume());
    const std::int64_t begin = columns.first;
    std::size_t n = 0;
    for (std::int64_t i = 0; i < a[0].kernel; ++i) {
      const std::int64_t z = conv::tap(a[0], row.at / a[1].out, i);
      if (!conv::inside(a[0], z)) continue;
      for (std::int64_t j = 0; j < a[1].kernel; ++j) {
        const std::int64_t r = conv::tap(a[1], row.at % a[1].out, j);
        if (!conv::inside(a[1], r)) continue;
        for (std::int64_t l = 0; l < a[2].kernel; ++l) {
          const std::int64_t q = conv::tap(a[2], begin, l);
          if (!conv::inside(a[2], q)) continue;
          x[n] = row.x + (z * a[1].in + r) * a[2].in + q;
          w[n++] = row.w[(i * a[1].kernel + j) * a[2].kernel + l];
        }
      }
    }
    run.k->taps({x, w, n, static_cast<std::size_t>(columns.second - begin),
                 static_cast<std::size_t>(a[2].stride), row.bias, row.y + begin});
  }

  conv::Problem p_;
  Operand x_, w_, bias_, y_;
  std::vector<std::int64_t> cuts_;
};

}  // namespace

Result<StepPtr> make_conv_step(const Step& step, Build& build) {
  const Operand& w = step.inputs[1];
  conv::Window window{
      {},   step.op.attrs.list(0), step.op.attrs.list(1), step.op.attrs.list(2), step.op.attrs.i(4),
      false};
  CYB_ASSIGN(window.kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  const auto groups = static_cast<std::size_t>(step.op.attrs.i(3));
  const conv::Problem problem =
      conv::problem_of(step.inputs[0].shape, w.shape, step.outputs[0].shape, window, groups);
  if (problem.in_channels != 1 || problem.out_channels != 1) return StepPtr();
  return std::make_unique<DepthwiseStep>(step, problem, build);
}

}  // namespace cyb::cpu
