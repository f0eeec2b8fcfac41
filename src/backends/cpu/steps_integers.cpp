// Integer products with stored weights, and steps to and from integers. The integers are those of
// the reference: a byte less its zero point fits 16 bits, and sums of products are exact.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {

const std::byte* stored_bytes(const Operand& operand) {
  if (operand.kind != Operand::Kind::kWeight) return nullptr;
  const TensorView source = cpu_weight(operand)->source();
  const bool whole = source.dtype == operand.dtype && source.shape.count() == operand.shape.count();
  return whole ? source.data : nullptr;
}

Result<Buffer> pair_panels(const ByteMatrix& b) {
  const std::size_t pairs = (b.k + 1) / 2, blocks = (b.n + kPairColumns - 1) / kPairColumns;
  CYB_ASSIGN(Buffer buffer,
             Buffer::allocate(blocks * pairs * kPairColumns * sizeof(std::int32_t), "cpu"));
  auto* to = buffer.as<std::int16_t>();
  for (std::size_t t = 0; t < b.k; ++t) {
    for (std::size_t c = 0; c < b.n; ++c) {
      const std::int32_t z =
          b.zero == nullptr ? 0 : byte_at(b.zero, b.dtype, b.zero_per_column ? c : 0);
      const std::size_t word = (c / kPairColumns * pairs + t / 2) * kPairColumns + c % kPairColumns;
      to[2 * word + t % 2] = static_cast<std::int16_t>(byte_at(b.data, b.dtype, t * b.n + c) - z);
    }
  }
  return buffer;
}

namespace {

constexpr std::size_t kRows = 48;  // of an item

bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}
bool absent(const Step& step, std::size_t k) {
  return k >= step.inputs.size() || step.inputs[k].kind == Operand::Kind::kNone;
}
/// a [rows, K] times stored panels of b [K, N] without its zero points.
class IntegerProductStep final : public PlainStep {
 public:
  IntegerProductStep(const Step& step, std::shared_ptr<const Buffer> panels, Build& build)
      : a_(step.inputs[0]),
        zero_(absent(step, 2) ? Operand{} : step.inputs[2]),
        y_(step.outputs[0]),
        panels_(std::move(panels)),
        k_(static_cast<std::size_t>(a_.shape.back())),
        n_(static_cast<std::size_t>(step.inputs[1].shape[1])),
        rows_(static_cast<std::size_t>(a_.shape.count()) / k_),
        m_(a_.shape.rank() > 1 ? static_cast<std::size_t>(a_.shape[a_.shape.rank() - 2]) : 1),
        counter_(build.counter()) {
    const std::size_t blocks = (n_ + kPairColumns - 1) / kPairColumns;
    cuts_ = (rows_ + kRows - 1) / kRows;
    const std::size_t wanted = build.n_threads == 1 ? 1 : 4 * build.n_threads;
    column_cuts_ = std::min(blocks, (wanted + cuts_ - 1) / cuts_);
    columns_ = (blocks + column_cuts_ - 1) / column_cuts_ * kPairColumns;
    column_cuts_ = (n_ + columns_ - 1) / columns_;
    build.want_thread(kRows * pairs() * sizeof(std::int32_t));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    auto* words = reinterpret_cast<std::int32_t*>(run.thread_scratch[thread]);
    std::size_t have = ~std::size_t{0};
    for (std::size_t i; (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) <
                        cuts_ * column_cuts_;) {
      const std::size_t first = i / column_cuts_ * kRows, rows = std::min(kRows, rows_ - first);
      const std::size_t column = i % column_cuts_ * columns_;
      if (have != first) widen(run, first, rows, words);
      have = first;
      run.k->integers.pairs(
          {.a = words,
           .rows = rows,
           .n_pairs = pairs(),
           .b = panels_->as<std::int32_t>() + column * pairs(),
           .n_outputs = std::min(columns_, n_ - column),
           .y = reinterpret_cast<std::int32_t*>(run.arena + y_.offset) + first * n_ + column,
           .y_row = n_});
    }
  }

 private:
  std::size_t pairs() const noexcept { return (k_ + 1) / 2; }

  /// Rows of a without their zero points, two int16 a word.
  void widen(const Run& run, std::size_t first, std::size_t rows,
             std::int32_t* words) const noexcept {
    const std::byte* a = run.data(a_);
    const bool none = zero_.kind == Operand::Kind::kNone, many = zero_.shape.count() > 1;
    for (std::size_t r = first; r < first + rows; ++r, words += pairs()) {
      const std::int32_t zero = none ? 0 : byte_at(run.data(zero_), zero_.dtype, many ? r % m_ : 0);
      auto* to = reinterpret_cast<std::int16_t*>(words);
      const std::byte* row = a + r * k_;
      if (a_.dtype == DType::kI8) {
        const auto* from = reinterpret_cast<const std::int8_t*>(row);
        for (std::size_t k = 0; k < k_; ++k) to[k] = static_cast<std::int16_t>(from[k] - zero);
      } else {
        const auto* from = reinterpret_cast<const std::uint8_t*>(row);
        for (std::size_t k = 0; k < k_; ++k) to[k] = static_cast<std::int16_t>(from[k] - zero);
      }
      if (k_ % 2 != 0) to[k_] = 0;
    }
  }

  Operand a_, zero_, y_;
  std::shared_ptr<const Buffer> panels_;
  std::size_t k_, n_, rows_, m_;
  std::size_t cuts_ = 1, column_cuts_ = 1, columns_ = 0;
  std::size_t counter_;
};

Result<StepPtr> make_integer_product(const Step& step, Build& build) {
  const Operand &a = step.inputs[0], &b = step.inputs[1];
  if (b.shape.rank() != 2 || a.shape.count() == 0 || b.shape.count() == 0 || !is_byte(a.dtype) ||
      !is_byte(b.dtype) || stored_bytes(b) == nullptr)
    return StepPtr();
  const bool has_zero = !absent(step, 3);
  const std::byte* zero = has_zero ? stored_bytes(step.inputs[3]) : nullptr;
  if (has_zero && zero == nullptr) return StepPtr();
  const ByteMatrix matrix{stored_bytes(b),
                          b.dtype,
                          static_cast<std::size_t>(b.shape[0]),
                          static_cast<std::size_t>(b.shape[1]),
                          zero,
                          has_zero && step.inputs[3].shape.count() > 1};
  CYB_ASSIGN(Buffer panels, pair_panels(matrix));
  build.kept_bytes += panels.size();
  return std::make_unique<IntegerProductStep>(
      step, std::make_shared<const Buffer>(std::move(panels)), build);
}

void limits_of(DType dtype, std::int32_t zero, std::int32_t (&zero_low_high)[3]) {
  zero_low_high[0] = zero;
  zero_low_high[1] = dtype == DType::kI8 ? -128 : 0;
  zero_low_high[2] = dtype == DType::kI8 ? 127 : 255;
}

/// To or from bytes with one scale.
class QuantiseStep final : public PlainStep {
 public:
  explicit QuantiseStep(const Step& step)
      : x_(step.inputs[0]),
        scale_(step.inputs[1]),
        zero_(absent(step, 2) ? Operand{} : step.inputs[2]),
        y_(step.outputs[0]) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const Share s = grains(run.elements(x_), run, thread);
    const float scale = *run.f32(scale_);
    const std::int32_t zero =
        zero_.kind == Operand::Kind::kNone ? 0 : byte_at(run.data(zero_), zero_.dtype, 0);
    if (is_byte(x_.dtype)) {
      const auto* x = reinterpret_cast<const std::uint8_t*>(run.data(x_)) + s.begin;
      run.k->integers.dequantise[x_.dtype == DType::kI8 ? 1 : 0](x, s.end - s.begin, zero, scale,
                                                                 run.out(y_) + s.begin);
      return;
    }
    std::int32_t zero_low_high[3];
    limits_of(y_.dtype, zero, zero_low_high);
    run.k->integers.quantise(run.f32(x_) + s.begin, s.end - s.begin, scale, zero_low_high,
                             reinterpret_cast<std::uint8_t*>(run.arena + y_.offset) + s.begin);
  }

 private:
  Operand x_, scale_, zero_, y_;
};

/// Bytes whose scale and zero point the tensor itself decides.
class DynamicQuantiseStep final : public CpuStep {
 public:
  DynamicQuantiseStep(const Step& step, Build& build)
      : x_(step.inputs[0]), outputs_(step.outputs), fault_(build.counter()) {
    build.want_shared(build.n_threads * kLine);
    build.faults.push_back({fault_, "DynamicQuantizeLinear", "input 0", step.label});
  }

  unsigned phases(const Run&) const noexcept override { return 2; }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    const Share s = grains(run.elements(x_), run, thread);
    const float* x = run.f32(x_) + s.begin;
    const std::size_t n = s.end - s.begin;
    float low_high[2];
    if (phase == 0) {
      if (!run.k->integers.range(x, n, low_high)) blame(run, x, n, s.begin);
      std::memcpy(run.shared + thread * kLine, low_high, sizeof low_high);
      return;
    }
    float low = 0.0f, high = 0.0f;
    for (unsigned t = 0; t < run.n_threads; ++t) {
      std::memcpy(low_high, run.shared + t * kLine, sizeof low_high);
      low = std::min(low, low_high[0]);
      high = std::max(high, low_high[1]);
    }
    float scale = (high - low) / 255.0f;
    if (scale == 0.0f) scale = 1.0f;
    const float from_low = -low;
    std::uint8_t zero = 0;
    std::int32_t zero_low_high[3] = {0, 0, 255};
    run.k->integers.quantise(&from_low, 1, scale, zero_low_high, &zero);
    zero_low_high[0] = zero;
    run.k->integers.quantise(
        x, n, scale, zero_low_high,
        reinterpret_cast<std::uint8_t*>(run.arena + outputs_[0].offset) + s.begin);
    if (thread != 0) return;
    *run.out(outputs_[1]) = scale;
    run.arena[outputs_[2].offset] = static_cast<std::byte>(zero);
  }

 private:
  static constexpr std::size_t kLine = 64;

  /// The first value that is not finite, whatever the threads' order.
  void blame(const Run& run, const float* x, std::size_t n, std::size_t first) const noexcept {
    std::size_t i = 0;
    while (i < n && std::isfinite(x[i])) ++i;
    const auto row = static_cast<std::uint32_t>(first + i + 1);
    std::atomic<std::uint32_t>& fault = run.counters[fault_];
    std::uint32_t seen = fault.load(std::memory_order_relaxed);
    while ((seen == 0 || row < seen) &&
           !fault.compare_exchange_weak(seen, row, std::memory_order_relaxed)) {
    }
  }

  Operand x_;
  std::vector<Operand> outputs_;
  std::size_t fault_;
};

/// One scale for all, f32, and bytes on one side.
bool has_one_scale(const Step& step) {
  const Operand &x = step.inputs[0], &scale = step.inputs[1], &y = step.outputs[0];
  const bool bytes =
      (is_byte(x.dtype) && y.dtype == DType::kF32) || (x.dtype == DType::kF32 && is_byte(y.dtype));
  const bool same_zero = absent(step, 2) || is_byte(step.inputs[2].dtype);
  return bytes && same_zero && scale.dtype == DType::kF32 && scale.shape.rank() <= 1 &&
         scale.shape.count() == 1 && step.op.attrs.i(1) == 0;
}

}  // namespace

Result<StepPtr> make_integer_step(const Step& step, Build& build) {
  switch (step.op.tag) {
    case OpTag::kMatmulInteger:
      return make_integer_product(step, build);
    case OpTag::kDynamicQuantizeLinear:
      return std::make_unique<DynamicQuantiseStep>(step, build);
    default:
      if (!has_one_scale(step)) return StepPtr();
      return std::make_unique<QuantiseStep>(step);
  }
}

}  // namespace cyb::cpu
