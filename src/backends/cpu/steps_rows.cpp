// Steps over rows and elements: TokenEmbed, Gather of rows, norms, elementwise arithmetic,
// activations, softcap, copies.
#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/step.hpp"
#include "ops/activation/gelu.hpp"
#include "ops/blocks.hpp"
#include "ops/norm/rms_norm.hpp"

namespace cyb::cpu {
namespace {

/// Row copies from a weight (decoded) or from rows of the arena.
class GatherStep final : public PlainStep {
 public:
  GatherStep(const Step& step, bool embed)
      : table_(step.inputs[embed ? 1 : 0]),
        indices_(step.inputs[embed ? 0 : 1]),
        out_(step.outputs[0]) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto width = static_cast<std::size_t>(out_.shape.back());
    const auto* indices = reinterpret_cast<const std::int32_t*>(run.data(indices_));
    const CpuWeight* weight = table_.kind == Operand::Kind::kWeight ? cpu_weight(table_) : nullptr;
    const FormatInfo& info = format_info(weight != nullptr ? weight->dtype() : DType::kF32);
    const std::byte* rows = weight != nullptr ? weight->source().data : run.data(table_);
    const std::size_t row_bytes = width / info.block_values * info.block_bytes;
    for (Share s(run.elements(indices_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      info.decode(rows + static_cast<std::size_t>(indices[s.begin]) * row_bytes,
                  run.out(out_) + s.begin * width, width);
    }
  }

 private:
  Operand table_, indices_, out_;
};

class RmsNormStep final : public PlainStep {
 public:
  /// add: y = x + norm(z) of BlockNormAdd, else y = norm(x).
  RmsNormStep(const Step& step, float eps, bool add, Build& build)
      : x_(step.inputs[0]),
        z_(step.inputs[add ? 1 : 0]),
        gain_(step.inputs[add ? 2 : 1]),
        out_(step.outputs[0]),
        eps_(eps),
        add_(add) {
    build.want_thread(static_cast<std::size_t>(z_.shape.back()) * sizeof(float));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const auto width = static_cast<std::size_t>(z_.shape.back());
    const float* gain = run.f32(gain_);
    for (Share s(run.rows(z_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t at = s.begin * width;
      float* y = run.out(out_) + at;
      if (add_) {
        float* normed = reinterpret_cast<float*>(run.thread_scratch[thread]);
        run.k->rms_norm(run.f32(z_) + at, gain, width, eps_, normed);
        run.k->add(run.f32(x_) + at, normed, width, y);
      } else {
        run.k->rms_norm(run.f32(z_) + at, gain, width, eps_, y);
      }
    }
  }

 private:
  Operand x_, z_, gain_, out_;
  float eps_;
  bool add_;
};

/// a op b with b of equal shape, one value, or one row that is repeated.
class BinaryStep final : public PlainStep {
 public:
  explicit BinaryStep(const Step& step)
      : tag_(step.op.tag), a_(step.inputs[0]), b_(step.inputs[1]), out_(step.outputs[0]) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t n = run.elements(a_), n_b = run.elements(b_);
    const float *a = run.f32(a_), *b = run.f32(b_);
    float* y = run.out(out_);
    if (n_b == n || n_b == 1) {
      const Share s = grains(n, run, thread);
      const Side side{n_b == n ? b + s.begin : b, n_b != n};
      arithmetic(*run.k, tag_, {a + s.begin, false}, side, s.end - s.begin, y + s.begin);
      return;
    }
    for (Share s(n / n_b, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      arithmetic(*run.k, tag_, {a + s.begin * n_b, false}, {b, false}, n_b, y + s.begin * n_b);
    }
  }

 private:
  OpTag tag_;
  Operand a_, b_, out_;
};

class MapStep final : public PlainStep {
 public:
  MapStep(const Step& step, RowOp op) : x_(step.inputs[0]), out_(step.outputs[0]), op_(op) {}
  MapStep(const Step& step, float cap) : x_(step.inputs[0]), out_(step.outputs[0]), cap_(cap) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const Share s = grains(run.elements(x_), run, thread);
    const float* x = run.f32(x_) + s.begin;
    float* y = run.out(out_) + s.begin;
    if (cap_ > 0.0f) {
      run.k->softcap(x, cap_, s.end - s.begin, y);
    } else {
      run.k->map[static_cast<std::size_t>(op_)](x, s.end - s.begin, y);
    }
  }

 private:
  Operand x_, out_;
  RowOp op_ = RowOp::kSilu;
  float cap_ = 0.0f;
};

class CopyStep final : public PlainStep {
 public:
  explicit CopyStep(const Step& step) : x_(step.inputs[0]), out_(step.outputs[0]) {}
  void run(const Run& run, unsigned thread) const noexcept override {
    const Share s = grains(run.elements(out_), run, thread);
    if (run.f32(x_) == run.out(out_)) return;
    std::memcpy(run.out(out_) + s.begin, run.f32(x_) + s.begin, (s.end - s.begin) * sizeof(float));
  }

 private:
  Operand x_, out_;
};

RowOp gelu_op(GeluMode mode) {
  return mode == GeluMode::kErf    ? RowOp::kGeluErf
         : mode == GeluMode::kTanh ? RowOp::kGeluTanh
                                   : RowOp::kGeluQuick;
}

}  // namespace

Result<StepPtr> make_row_step(const Step& step, Build& build) {
  const Attrs& attrs = step.op.attrs;
  switch (step.op.tag) {
    case OpTag::kTokenEmbed:
      return std::make_unique<GatherStep>(step, true);
    case OpTag::kGather:
      return std::make_unique<GatherStep>(step, false);
    case OpTag::kRmsNorm:
      return std::make_unique<RmsNormStep>(step, attrs.f(0), false, build);
    case OpTag::kBlockNormAdd:
      return std::make_unique<RmsNormStep>(step, BlockNormAddAttrs::from(attrs).eps, true, build);
    case OpTag::kAdd:
    case OpTag::kSub:
    case OpTag::kMul:
      return std::make_unique<BinaryStep>(step);
    case OpTag::kBlockSoftcap:
      return std::make_unique<MapStep>(step, BlockSoftcapAttrs::from(attrs).cap);
    case OpTag::kSilu:
      return std::make_unique<MapStep>(step, RowOp::kSilu);
    case OpTag::kGelu:
      return std::make_unique<MapStep>(step, gelu_op(GeluAttrs::from(attrs).mode));
    case OpTag::kRelu:
      return std::make_unique<MapStep>(step, RowOp::kRelu);
    case OpTag::kSigmoid:
      return std::make_unique<MapStep>(step, RowOp::kSigmoid);
    case OpTag::kTanh:
      return std::make_unique<MapStep>(step, RowOp::kTanh);
    case OpTag::kReshape:
      return std::make_unique<CopyStep>(step);
    default:
      return StepPtr();
  }
}

}  // namespace cyb::cpu
