// Steps of norms, softmax and reductions. Every sum is over one row, in an order that its length
// decides.
#include <algorithm>
#include <cmath>

#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {
namespace {

std::size_t product(const Shape& shape, std::size_t from, std::size_t to) {
  std::size_t n = 1;
  for (std::size_t i = from; i < to; ++i) n *= static_cast<std::size_t>(shape[i]);
  return n;
}

/// Stored statistics: x [B, C, ...], four vectors [C].
class BatchNormStep final : public PlainStep {
 public:
  BatchNormStep(const Step& step, const Build& build)
      : inputs_(step.inputs),
        y_(step.outputs[0]),
        k_(build.k->elements),
        eps_(step.op.attrs.f(0)),
        channels_(static_cast<std::size_t>(step.inputs[0].shape[1])),
        inner_(product(step.inputs[0].shape, 2, step.inputs[0].shape.rank())) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t planes = run.elements(inputs_[0]) / std::max<std::size_t>(inner_, 1);
    for (Share s(planes, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t c = s.begin % channels_;
      const float channel[4] = {run.f32(inputs_[3])[c],
                                __builtin_sqrtf(run.f32(inputs_[4])[c] + eps_),
                                run.f32(inputs_[1])[c], run.f32(inputs_[2])[c]};
      k_.normalise(run.f32(inputs_[0]) + s.begin * inner_, channel, inner_,
                   run.out(y_) + s.begin * inner_);
    }
  }

 private:
  std::vector<Operand> inputs_;
  Operand y_;
  const ElementKernels& k_;
  float eps_;
  std::size_t channels_, inner_;
};

/// Statistics of each group of channels of x [B, C, ...]; the gain and bias of a channel may be
/// absent.
class GroupNormStep final : public PlainStep {
 public:
  GroupNormStep(const Step& step, const Build& build, std::size_t groups, float eps)
      : x_(step.inputs[0]),
        gain_(step.inputs.size() > 1 ? step.inputs[1] : Operand{}),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]),
        k_(*build.k),
        eps_(eps),
        groups_(groups),
        channels_(static_cast<std::size_t>(x_.shape[1]) / groups),
        inner_(product(x_.shape, 2, x_.shape.rank())) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t n = channels_ * inner_;
    const float* gain = gain_.kind == Operand::Kind::kNone ? nullptr : run.f32(gain_);
    const float* bias = bias_.kind == Operand::Kind::kNone ? nullptr : run.f32(bias_);
    for (Share s(run.elements(x_) / n, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      float* y = run.out(y_) + s.begin * n;
      k_.elements.layer_norm(run.f32(x_) + s.begin * n, nullptr, nullptr, n, eps_, y);
      const std::size_t first = s.begin % groups_ * channels_;
      for (std::size_t c = 0; c < channels_; ++c, y += inner_) {
        if (gain != nullptr) k_.scale(y, gain[first + c], inner_, y);
        if (bias != nullptr) k_.offset(y, bias[first + c], inner_, y);
      }
    }
  }

 private:
  Operand x_, gain_, bias_, y_;
  const KernelTable& k_;
  float eps_;
  std::size_t groups_, channels_, inner_;  // channels of a group
};

/// LayerNorm over the last dimension.
class LayerNormStep final : public PlainStep {
 public:
  LayerNormStep(const Step& step, const Build& build)
      : x_(step.inputs[0]),
        gain_(step.inputs.size() > 1 ? step.inputs[1] : Operand{}),
        bias_(step.inputs.size() > 2 ? step.inputs[2] : Operand{}),
        y_(step.outputs[0]),
        k_(build.k->elements),
        eps_(step.op.attrs.f(0)) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto n = static_cast<std::size_t>(x_.shape.back());
    const float* gain = gain_.kind == Operand::Kind::kNone ? nullptr : run.f32(gain_);
    const float* bias = bias_.kind == Operand::Kind::kNone ? nullptr : run.f32(bias_);
    for (Share s(run.rows(x_), thread, run.n_threads); s.begin < s.end; ++s.begin)
      k_.layer_norm(run.f32(x_) + s.begin * n, gain, bias, n, eps_, run.out(y_) + s.begin * n);
  }

 private:
  Operand x_, gain_, bias_, y_;
  const ElementKernels& k_;
  float eps_;
};

/// Over one dimension; a row of -Inf alone is a fault.
class SoftmaxStep final : public PlainStep {
 public:
  SoftmaxStep(const Step& step, Build& build)
      : x_(step.inputs[0]), y_(step.outputs[0]), k_(build.k->elements), fault_(build.counter()) {
    const Shape& shape = x_.shape;
    const std::int64_t d = step.op.attrs.i(0);
    const auto axis =
        static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(shape.rank()) : d);
    n_ = static_cast<std::size_t>(shape[axis]);
    inner_ = product(shape, axis + 1, shape.rank());
    if (inner_ != 1) build.want_thread(n_ * sizeof(float));
    build.faults.push_back({fault_, "Softmax", "row of -Inf", step.label});
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    auto* row = reinterpret_cast<float*>(run.thread_scratch[thread]);
    const std::size_t rows = n_ == 0 ? 0 : run.elements(x_) / n_;
    for (Share s(rows, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t base = s.begin / inner_ * n_ * inner_ + s.begin % inner_;
      const float* x = run.f32(x_) + base;
      float* y = run.out(y_) + base;
      bool done;
      if (inner_ == 1) {
        done = k_.softmax(x, n_, y);
      } else {
        for (std::size_t i = 0; i < n_; ++i) row[i] = x[i * inner_];
        done = k_.softmax(row, n_, row);
        for (std::size_t i = 0; i < n_; ++i) y[i * inner_] = row[i];
      }
      if (!done) blame(run.counters[fault_], static_cast<std::uint32_t>(s.begin + 1));
    }
  }

 private:
  /// The first row, whatever the threads' order.
  static void blame(std::atomic<std::uint32_t>& fault, std::uint32_t row) noexcept {
    std::uint32_t seen = fault.load(std::memory_order_relaxed);
    while ((seen == 0 || row < seen) &&
           !fault.compare_exchange_weak(seen, row, std::memory_order_relaxed)) {
    }
  }

  Operand x_, y_;
  const ElementKernels& k_;
  std::size_t fault_, n_ = 1, inner_ = 1;
};

/// Sum or mean of trailing dimensions.
class ReduceStep final : public PlainStep {
 public:
  ReduceStep(const Step& step, const Build& build, std::size_t row, bool mean)
      : x_(step.inputs[0]), y_(step.outputs[0]), k_(build.k->elements), row_(row), mean_(mean) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    for (Share s(run.elements(y_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const float sum = k_.sum(run.f32(x_) + s.begin * row_, row_);
      run.out(y_)[s.begin] = mean_ ? sum / static_cast<float>(row_) : sum;
    }
  }

 private:
  Operand x_, y_;
  const ElementKernels& k_;
  std::size_t row_;
  bool mean_;
};

std::vector<std::int64_t> constants(const Operand& operand) {
  const TensorView view = cpu_weight(operand)->source();
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < operand.shape.count(); ++i)
    out.push_back(view.dtype == DType::kI64 ? view.as<std::int64_t>()[i]
                                            : view.as<std::int32_t>()[i]);
  return out;
}

/// Length of the trailing dimensions that `axes` name (none: all); 0 where they are not the
/// trailing ones.
std::size_t trailing(const Shape& shape, const std::vector<std::int64_t>& axes) {
  const std::size_t rank = shape.rank();
  std::vector<bool> reduced(rank, axes.empty());
  for (const std::int64_t a : axes)
    reduced[static_cast<std::size_t>(a < 0 ? a + static_cast<std::int64_t>(rank) : a)] = true;
  std::size_t at = rank;
  while (at > 0 && (reduced[at - 1] || shape[at - 1] == 1)) --at;
  for (std::size_t i = 0; i < at; ++i) {
    if (reduced[i] && shape[i] != 1) return 0;
  }
  return product(shape, at, rank);
}

Result<StepPtr> make_reduce(const Step& step, const Build& build) {
  const auto reduction = reduction_of(step);
  if (!reduction) return StepPtr();
  const std::size_t row = trailing(step.inputs[0].shape, reduction->axes);
  if (row == 0 || step.inputs[0].shape.count() == 0) return StepPtr();
  return std::make_unique<ReduceStep>(step, build, row, reduction->mean);
}

}  // namespace

std::optional<Reduction> reduction_of(const Step& step) {
  if (step.op.tag != OpTag::kReduce)
    return Reduction{step.op.attrs.list(0), step.op.tag == OpTag::kReduceMean};
  if (step.op.attrs.i(0) > 1) return std::nullopt;
  Reduction reduction{{}, step.op.attrs.i(0) == 1};
  if (step.inputs.size() > 1 && step.inputs[1].kind != Operand::Kind::kNone) {
    if (step.inputs[1].kind != Operand::Kind::kWeight) return std::nullopt;
    reduction.axes = constants(step.inputs[1]);
  }
  if (reduction.axes.empty() && step.op.attrs.i(2) != 0) return std::nullopt;
  return reduction;
}

Result<StepPtr> make_norm_step(const Step& step, Build& build) {
  switch (step.op.tag) {
    case OpTag::kBatchNorm:
      return std::make_unique<BatchNormStep>(step, build);
    case OpTag::kLayerNorm:
      return std::make_unique<LayerNormStep>(step, build);
    case OpTag::kGroupNorm:
    case OpTag::kInstanceNorm: {
      const Shape& x = step.inputs[0].shape;
      if (x.count() == 0) return StepPtr();
      const bool grouped = step.op.tag == OpTag::kGroupNorm;
      const auto groups = static_cast<std::size_t>(grouped ? step.op.attrs.i(0) : x[1]);
      return std::make_unique<GroupNormStep>(step, build, groups, step.op.attrs.f(grouped ? 1 : 0));
    }
    case OpTag::kSoftmax:
      return std::make_unique<SoftmaxStep>(step, build);
    default:
      return make_reduce(step, build);
  }
}

}  // namespace cyb::cpu
