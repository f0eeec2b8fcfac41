// ConvInteger with stored weights: patches of 16 outputs at a time, less the input's zero point, as
// pairs of int16 beside the weight's rows. A tap outside the input is 0 after that. Sums are exact.
#include <algorithm>
#include <array>

#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {
namespace {

using conv::Axis;

constexpr std::size_t kBlock = 16;               // outputs of a patch
constexpr std::size_t kPatchBytes = 192 * 1024;  // patches of an item
constexpr std::size_t kMaxBlocks = 8;            // of an item

class IntegerConvStep final : public PlainStep {
 public:
  IntegerConvStep(const Step& step, const conv::Problem& problem,
                  std::shared_ptr<const Buffer> weights, Build& build)
      : p_(problem),
        x_(step.inputs[0]),
        zero_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]),
        weights_(std::move(weights)),
        k_(p_.in_channels * p_.volume()),
        counter_(build.counter()) {
    const std::size_t all = (p_.out_size() + kBlock - 1) / kBlock;
    const std::size_t fits = kPatchBytes / (pairs() * kBlock * sizeof(std::int32_t));
    const std::size_t planes = p_.batch * p_.groups;
    const std::size_t share =
        build.n_threads == 1 ? all : planes * all / (4 * std::size_t{build.n_threads});
    blocks_ = std::clamp<std::size_t>(std::min({fits, all, share}), 1, kMaxBlocks);
    cuts_ = (all + blocks_ - 1) / blocks_;
    build.want_thread(blocks_ * pairs() * kBlock * sizeof(std::int32_t));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    auto* patches = reinterpret_cast<std::int32_t*>(run.thread_scratch[thread]);
    const std::size_t size = p_.out_size();
    for (std::size_t i; (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) <
                        p_.batch * p_.groups * cuts_;) {
      const std::size_t plane = i / cuts_, first = i % cuts_ * blocks_ * kBlock;
      const std::size_t n = std::min(blocks_ * kBlock, size - first);
      for (std::size_t at = 0; at < n; at += kBlock) {
        auto* to = reinterpret_cast<std::int16_t*>(patches + at * pairs());
        x_.dtype == DType::kI8 ? patch<std::int8_t>(run, plane, first + at, to)
                               : patch<std::uint8_t>(run, plane, first + at, to);
      }
      const std::size_t group = plane % p_.groups;
      run.k->integers.pairs({.a = weights_->as<std::int32_t>() + group * p_.out_channels * pairs(),
                             .rows = p_.out_channels,
                             .n_pairs = pairs(),
                             .b = patches,
                             .n_outputs = n,
                             .y = reinterpret_cast<std::int32_t*>(run.arena + y_.offset) +
                                  plane * p_.out_channels * size + first,
                             .y_row = size});
    }
  }

 private:
  std::size_t pairs() const noexcept { return (k_ + 1) / 2; }

  /// Neighbours in one line of outputs.
  struct Run16 {
    std::size_t lane, n;
    std::int64_t z, y, x;  // input position of tap 0
  };

  /// Outputs [first, first + 16) of a (sample, group): [pair][16][2]; lanes past the last one are
  /// 0.
  template <class T>
  void patch(const Run& run, std::size_t plane, std::size_t first,
             std::int16_t* to) const noexcept {
    const auto& a = p_.axes;
    const std::size_t n = std::min(kBlock, p_.out_size() - first);
    std::array<Run16, kBlock> runs;
    std::size_t n_runs = 0;
    for (std::size_t lane = 0; lane < n;) {
      const auto flat = static_cast<std::int64_t>(first + lane);
      const std::int64_t q = flat % a[2].out, r = flat / a[2].out % a[1].out;
      const std::size_t width = std::min(n - lane, static_cast<std::size_t>(a[2].out - q));
      runs[n_runs++] = {lane, width, conv::tap(a[0], flat / (a[2].out * a[1].out), 0),
                        conv::tap(a[1], r, 0), conv::tap(a[2], q, 0)};
      lane += width;
    }
    const bool none = zero_.kind == Operand::Kind::kNone;
    const auto zero =
        static_cast<std::int16_t>(none ? 0 : *reinterpret_cast<const T*>(run.data(zero_)));
    std::fill_n(to, pairs() * kBlock * 2, std::int16_t{0});
    const T* x = reinterpret_cast<const T*>(run.data(x_)) + plane * p_.in_channels * p_.in_size();
    const std::span<const Run16> all{runs.data(), n_runs};
    for (std::size_t c = 0; c < p_.in_channels; ++c)
      channel(x + c * p_.in_size(), c * p_.volume(), all, zero, to);
  }

  /// Values k, k + 1, ... of the patch: the taps of a channel.
  template <class T>
  void channel(const T* x, std::size_t k, std::span<const Run16> runs, std::int16_t zero,
               std::int16_t* to) const noexcept {
    const auto& a = p_.axes;
    const auto width = static_cast<std::size_t>(a[2].kernel);
    for (std::int64_t line = 0; line < a[0].kernel * a[1].kernel; ++line, k += width) {
      const std::int64_t i = line / a[1].kernel, j = line % a[1].kernel;
      for (const Run16& run : runs) {
        const std::int64_t z = run.z + i * a[0].dilation, y = run.y + j * a[1].dilation;
        if (!conv::inside(a[0], z) || !conv::inside(a[1], y)) continue;
        const T* row = x + (z * a[1].in + y) * a[2].in;
        for (std::size_t l = 0; l < width; ++l) {
          std::int16_t* lanes = to + ((k + l) / 2 * kBlock + run.lane) * 2 + (k + l) % 2;
          tap(row, run, run.x + static_cast<std::int64_t>(l) * a[2].dilation, zero, lanes);
        }
      }
    }
  }

  template <class T>
  void tap(const T* row, const Run16& run, std::int64_t at, std::int16_t zero,
           std::int16_t* lanes) const noexcept {
    const Axis& a = p_.axes[2];
    const auto n = static_cast<std::int64_t>(run.n);
    const std::int64_t lo = at >= 0 ? 0 : std::min(n, (-at + a.stride - 1) / a.stride);
    const std::int64_t room = a.in - at;
    const std::int64_t hi = room <= 0 ? 0 : std::min(n, (room + a.stride - 1) / a.stride);
    if (a.stride == 1) {
      for (std::int64_t i = lo; i < hi; ++i)
        lanes[2 * i] = static_cast<std::int16_t>(row[at + i] - zero);
    } else {
      for (std::int64_t i = lo; i < hi; ++i)
        lanes[2 * i] = static_cast<std::int16_t>(row[at + i * a.stride] - zero);
    }
  }

  conv::Problem p_;
  Operand x_, zero_, y_;
  std::shared_ptr<const Buffer> weights_;
  std::size_t k_, blocks_ = 1, cuts_ = 1, counter_;
};

/// Rows [outputs][pairs] of words: two int16 less the zero point.
template <class T>
Result<Buffer> weight_rows(const Step& step, std::size_t k) {
  const Operand& w = step.inputs[1];
  const auto rows = static_cast<std::size_t>(w.shape[0]);
  const bool has_zero = step.inputs.size() > 3 && step.inputs[3].kind != Operand::Kind::kNone;
  const auto* zeros =
      has_zero ? reinterpret_cast<const T*>(cpu_weight(step.inputs[3])->source().data) : nullptr;
  const bool many = has_zero && step.inputs[3].shape.count() > 1;
  const auto* from = reinterpret_cast<const T*>(cpu_weight(w)->source().data);
  const std::size_t pairs = (k + 1) / 2;
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(rows * pairs * sizeof(std::int32_t), "cpu"));
  for (std::size_t o = 0; o < rows; ++o) {
    const int zero = zeros == nullptr ? 0 : zeros[many ? o : 0];
    auto* to = buffer.as<std::int16_t>() + 2 * o * pairs;
    for (std::size_t t = 0; t < k; ++t) to[t] = static_cast<std::int16_t>(from[o * k + t] - zero);
  }
  return buffer;
}

}  // namespace

Result<StepPtr> make_integer_conv(const Step& step, Build& build) {
  const Operand &x = step.inputs[0], &w = step.inputs[1];
  const auto present = [&](std::size_t i) {
    return step.inputs.size() > i && step.inputs[i].kind != Operand::Kind::kNone;
  };
  if (stored_bytes(w) == nullptr || (present(3) && stored_bytes(step.inputs[3]) == nullptr))
    return StepPtr();
  if (x.shape.rank() > 5 || x.shape.count() == 0 || step.outputs[0].shape.count() == 0 ||
      w.shape.count() == 0 || (present(2) && step.inputs[2].shape.count() != 1))
    return StepPtr();
  conv::Window window{
      {},   step.op.attrs.list(0), step.op.attrs.list(1), step.op.attrs.list(2), step.op.attrs.i(4),
      false};
  CYB_ASSIGN(window.kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  const conv::Problem problem = conv::problem_of(x.shape, w.shape, step.outputs[0].shape, window,
                                                 static_cast<std::size_t>(step.op.attrs.i(3)));
  const std::size_t k = problem.in_channels * problem.volume();
  CYB_ASSIGN(Buffer rows, w.dtype == DType::kI8 ? weight_rows<std::int8_t>(step, k)
                                                : weight_rows<std::uint8_t>(step, k));
  build.kept_bytes += rows.size();
  return std::make_unique<IntegerConvStep>(step, problem,
                                           std::make_shared<const Buffer>(std::move(rows)), build);
}

}  // namespace cyb::cpu
