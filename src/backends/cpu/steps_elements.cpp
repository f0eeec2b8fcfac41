// Steps of one function of single elements, and division with every broadcast.
#include "backends/cpu/steps_elements.hpp"

#include <algorithm>
#include <limits>

namespace cyb::cpu {
namespace {

/// y = f(x; a, b); the parameters are constants, or the first value of an operand of the run.
class ElementStep final : public PlainStep {
 public:
  ElementStep(const Step& step, const Build& build, ElementOp op, float a = 0.0f, float b = 0.0f)
      : x_(step.inputs[0]),
        y_(step.outputs[0]),
        map_(build.k->elements.map[static_cast<std::size_t>(op)]),
        a_(a),
        b_(b) {}
  void take_a(const Operand& operand) { a_from_ = operand; }
  void take_b(const Operand& operand) { b_from_ = operand; }

  void run(const Run& run, unsigned thread) const noexcept override {
    const Share s = grains(run.elements(x_), run, thread);
    const float a = a_from_.kind == Operand::Kind::kNone ? a_ : *run.f32(a_from_);
    const float b = b_from_.kind == Operand::Kind::kNone ? b_ : *run.f32(b_from_);
    map_(run.f32(x_) + s.begin, a, b, s.end - s.begin, run.out(y_) + s.begin);
  }

 private:
  Operand x_, y_, a_from_, b_from_;
  void (*map_)(const float*, float, float, std::size_t, float*) noexcept;
  float a_, b_;
};

/// Rows of the last dimensions that both sides walk alike.
class DivStep final : public PlainStep {
 public:
  DivStep(const Step& step, const Build& build)
      : a_(step.inputs[0]), b_(step.inputs[1]), y_(step.outputs[0]), k_(*build.k) {
    const Shape& y = y_.shape;
    std::size_t at = y.rank();
    const auto dim = [&](const Shape& s, std::size_t d) {
      const std::size_t back = y.rank() - d;
      return back <= s.rank() ? s[s.rank() - back] : 1;
    };
    // The row: trailing dimensions of which each side has all or none.
    bool all_a = true, all_b = true;
    for (; at > 0; --at) {
      const std::int64_t n = y[at - 1], na = dim(a_.shape, at - 1), nb = dim(b_.shape, at - 1);
      const bool first = row_ == 1;
      if (n != 1) {
        if (first) all_a = na == n, all_b = nb == n;
        if ((na == n) != all_a || (nb == n) != all_b) break;
      }
      row_ *= static_cast<std::size_t>(n);
    }
    one_a_ = !all_a || row_ == 1;
    one_b_ = !all_b || row_ == 1;
    std::size_t step_a = one_a_ ? 1 : row_, step_b = one_b_ ? 1 : row_;
    for (; at > 0; --at) {
      const std::int64_t n = y[at - 1], na = dim(a_.shape, at - 1), nb = dim(b_.shape, at - 1);
      size_.push_back(static_cast<std::size_t>(n));
      stride_a_.push_back(na == 1 ? 0 : step_a);
      stride_b_.push_back(nb == 1 ? 0 : step_b);
      step_a *= static_cast<std::size_t>(na);
      step_b *= static_cast<std::size_t>(nb);
      rows_ *= static_cast<std::size_t>(n);
    }
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    if (rows_ == 1) {
      const Share s = grains(row_, run, thread);
      row(run, one_a_ ? 0 : s.begin, one_b_ ? 0 : s.begin, s.begin, s.end - s.begin);
      return;
    }
    for (Share s(rows_, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      std::size_t rest = s.begin, a = 0, b = 0;
      for (std::size_t i = 0; i < size_.size(); rest /= size_[i++]) {
        a += rest % size_[i] * stride_a_[i];
        b += rest % size_[i] * stride_b_[i];
      }
      row(run, a, b, s.begin * row_, row_);
    }
  }

 private:
  void row(const Run& run, std::size_t a, std::size_t b, std::size_t y,
           std::size_t n) const noexcept {
    if (n == 0) return;
    arithmetic(k_, OpTag::kDiv, {run.f32(a_) + a, one_a_}, {run.f32(b_) + b, one_b_}, n,
               run.out(y_) + y);
  }

  Operand a_, b_, y_;
  const KernelTable& k_;
  std::size_t row_ = 1, rows_ = 1;
  bool one_a_, one_b_;
  std::vector<std::size_t> size_, stride_a_, stride_b_;  // innermost first
};

/// The one value of a constant operand; none for others.
const float* constant(const Operand& operand) {
  if (operand.kind != Operand::Kind::kWeight || operand.dtype != DType::kF32) return nullptr;
  return operand.shape.count() == 1 ? cpu_weight(operand)->vector() : nullptr;
}

Result<StepPtr> make_clip(const Step& step, const Build& build) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  auto made = std::make_unique<ElementStep>(step, build, ElementOp::kClip, -kInf, kInf);
  const auto readable = [](const Operand& o) {
    return o.kind != Operand::Kind::kWeight || cpu_weight(o)->dtype() == DType::kF32;
  };
  for (std::size_t i = 1; i < step.inputs.size(); ++i) {
    if (!readable(step.inputs[i])) return StepPtr();
    const float* value = constant(step.inputs[i]);
    if (value != nullptr && *value != *value) return StepPtr();  // NaN has the reference's rule
    if (step.inputs[i].kind != Operand::Kind::kNone && value == nullptr) return StepPtr();
    if (value != nullptr) i == 1 ? made->take_a(step.inputs[i]) : made->take_b(step.inputs[i]);
  }
  return StepPtr(std::move(made));
}

Result<StepPtr> make_clamp(const Step& step, const Build& build) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Attrs& a = step.op.attrs;
  return std::make_unique<ElementStep>(step, build, ElementOp::kClip, a.i(0) != 0 ? a.f(1) : -kInf,
                                       a.i(2) != 0 ? a.f(3) : kInf);
}

}  // namespace

Result<StepPtr> make_element_step(const Step& step, Build& build) {
  const auto plain = [&](ElementOp op) -> Result<StepPtr> {
    return std::make_unique<ElementStep>(step, build, op);
  };
  switch (step.op.tag) {
    case OpTag::kErf:
      return plain(ElementOp::kErf);
    case OpTag::kExp:
      return plain(ElementOp::kExp);
    case OpTag::kSqrt:
      return plain(ElementOp::kSqrt);
    case OpTag::kReciprocal:
      return plain(ElementOp::kReciprocal);
    case OpTag::kHardSwish:
      return plain(ElementOp::kHardSwish);
    case OpTag::kLeakyRelu:
      return std::make_unique<ElementStep>(step, build, ElementOp::kLeaky, step.op.attrs.f(0));
    case OpTag::kHardSigmoid:
      return std::make_unique<ElementStep>(step, build, ElementOp::kHardSigmoid, step.op.attrs.f(0),
                                           step.op.attrs.f(1));
    case OpTag::kClamp:
      return make_clamp(step, build);
    case OpTag::kClip:
      return make_clip(step, build);
    case OpTag::kPow: {
      const float* power = constant(step.inputs[1]);
      const bool square =
          power != nullptr && *power == 2.0f && step.outputs[0].shape == step.inputs[0].shape;
      return square ? plain(ElementOp::kSquare) : Result<StepPtr>(StepPtr());
    }
    default:
      return std::make_unique<DivStep>(step, build);
  }
}

}  // namespace cyb::cpu
