// Compiling fused ops to works on blocks. An op without a loop of its own runs its reference on the
// block.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "backends/cpu/fused.hpp"
#include "ops/activation/gelu.hpp"
#include "ops/elementwise.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kMaxInputs = 4;

/// How an operand repeats along the elements of the result.
struct Cycle {
  std::size_t inner, count;
};

std::optional<Cycle> cycle_of(const Shape& out, const Shape& in, OpTag tag) {
  if (tag == OpTag::kPRelu && in.rank() == 1 && out.rank() >= 2 && in[0] == out[1]) {
    std::int64_t inner = 1;
    for (std::size_t i = 2; i < out.rank(); ++i) inner *= out[i];
    return Cycle{static_cast<std::size_t>(inner), static_cast<std::size_t>(in[0])};
  }
  if (in.rank() > out.rank()) return std::nullopt;
  const std::size_t shift = out.rank() - in.rank();
  std::size_t first = in.rank(), last = 0;
  for (std::size_t i = 0; i < in.rank(); ++i) {
    if (in[i] == 1) continue;
    first = std::min(first, i);
    last = i;
  }
  for (std::size_t i = first; i <= last && i < in.rank(); ++i) {
    if (in[i] != out[shift + i]) return std::nullopt;
  }
  std::int64_t inner = 1;
  for (std::size_t i = shift + last + 1; i < out.rank(); ++i) inner *= out[i];
  return Cycle{static_cast<std::size_t>(inner), static_cast<std::size_t>(in.count())};
}

bool has_work(OpTag tag) {
  switch (tag) {
    case OpTag::kWhere:
    case OpTag::kCompare:
    case OpTag::kNot:
    case OpTag::kBitwiseNot:
    case OpTag::kIsNan:
    case OpTag::kIsInf:
    case OpTag::kBitShift:
    case OpTag::kBitwiseAnd:
    case OpTag::kBitwiseOr:
    case OpTag::kBitwiseXor:
    case OpTag::kAnd:
    case OpTag::kOr:
    case OpTag::kXor:
      return false;
    default:
      return is_elementwise(tag);
  }
}

/// A Cast of whole integers to f32 leads.
bool is_cast(const Step& step) {
  if (step.op.tag != OpTag::kCast || step.outputs[0].dtype != DType::kF32 ||
      dtype_from_tag(static_cast<std::uint8_t>(step.op.attrs.i(0))) != DType::kF32)
    return false;
  const Operand& in = step.inputs[0];
  switch (in.dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kI32:
    case DType::kI64:
      return in.kind != Operand::Kind::kWeight && in.shape.count() == step.outputs[0].shape.count();
    default:
      return false;
  }
}

template <class T>
void to_floats(const std::byte* from, std::size_t first, std::size_t n, float* to) noexcept {
  const T* x = reinterpret_cast<const T*>(from) + first;
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(x[i]);
}

/// Rounded to the nearest, as the reference does.
void cast_integers(DType dtype, const std::byte* from, std::size_t first, std::size_t n,
                   float* to) noexcept {
  switch (dtype) {
    case DType::kI8:
      return to_floats<std::int8_t>(from, first, n, to);
    case DType::kU8:
      return to_floats<std::uint8_t>(from, first, n, to);
    case DType::kI32:
      return to_floats<std::int32_t>(from, first, n, to);
    default:
      return to_floats<std::int64_t>(from, first, n, to);
  }
}

bool is_operand(const Shape& out, const Operand& in, OpTag tag) {
  if (in.kind == Operand::Kind::kNone) return true;
  if (in.dtype != DType::kF32) return false;
  return in.shape.count() == 1 || in.shape.count() == out.count() ||
         cycle_of(out, in.shape, tag).has_value();
}

std::optional<RowOp> row_op(const Op& op) {
  switch (op.tag) {
    case OpTag::kSilu:
      return RowOp::kSilu;
    case OpTag::kRelu:
      return RowOp::kRelu;
    case OpTag::kSigmoid:
      return RowOp::kSigmoid;
    case OpTag::kTanh:
      return RowOp::kTanh;
    case OpTag::kGelu:
      switch (GeluAttrs::from(op.attrs).mode) {
        case GeluMode::kErf:
          return RowOp::kGeluErf;
        case GeluMode::kTanh:
          return RowOp::kGeluTanh;
        case GeluMode::kQuick:
          return RowOp::kGeluQuick;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// The function of an op with one operand and its parameters; none where there is no kernel.
struct Element {
  ElementOp op;
  float a = 0.0f, b = 0.0f;
};

std::optional<Element> element(const Op& op, std::span<const Side> in) noexcept {
  switch (op.tag) {
    case OpTag::kLeakyRelu:
      return Element{ElementOp::kLeaky, op.attrs.f(0)};
    case OpTag::kHardSigmoid:
      return Element{ElementOp::kHardSigmoid, op.attrs.f(0), op.attrs.f(1)};
    case OpTag::kHardSwish:
      return Element{ElementOp::kHardSwish};
    case OpTag::kPow:
      if (in[1].one && *in[1].data == 2.0f) return Element{ElementOp::kSquare};
      return std::nullopt;
    case OpTag::kClip: {
      constexpr float kInf = std::numeric_limits<float>::infinity();
      const bool low = in.size() > 1 && in[1].data != nullptr;
      const bool high = in.size() > 2 && in[2].data != nullptr;
      const float lo = low ? *in[1].data : -kInf, hi = high ? *in[2].data : kInf;
      if (lo != lo || hi != hi) return std::nullopt;  // NaN has the reference's rule
      return Element{ElementOp::kClip, lo, hi};
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool can_fuse(const Step& step) {
  if (step.fused.empty() || step.outputs.size() != 1) return false;
  const Operand& out = step.outputs[0];
  if (out.dtype != DType::kF32 || out.rows != RowKind::kFixed) return false;
  return std::ranges::all_of(step.fused, [&](const FusedOp& fused) {
    if (!has_work(fused.op.tag) || fused.inputs.size() > kMaxInputs) return false;
    return std::ranges::all_of(fused.inputs, [&](const FusedInput& in) {
      return in.is_result || is_operand(out.shape, step.fused_inputs[in.index], fused.op.tag);
    });
  });
}

bool FusedOps::takes_own_op(const Step& step) {
  if (is_cast(step)) return true;
  if (!has_work(step.op.tag) || step.inputs.size() > kMaxInputs) return false;
  return std::ranges::all_of(step.inputs, [&](const Operand& in) {
    return is_operand(step.outputs[0].shape, in, step.op.tag);
  });
}

FusedOps::FusedOps(const Step& original) : out_(original.outputs[0]) {
  Step step = original;
  join_patterns(step);
  const FusedSlots slots = fused_slots(step);
  n_slots_ = slots.n;
  n_blocks_ = n_slots_ - 1 + kMaxInputs;
  if (takes_own_op(step)) {
    Work own{step.op, {}};
    for (const Operand& in : step.inputs) own.inputs.push_back(source_of(in, step.op));
    works_.push_back(std::move(own));
  }
  for (std::size_t i = 0; i < step.fused.size(); ++i) {
    Work work{step.fused[i].op, {}, slots.of[i + 1]};
    for (const FusedInput& in : step.fused[i].inputs) {
      work.inputs.push_back(in.is_result ? Source{Source::Kind::kSlot, slots.of[in.index], {}}
                                         : source_of(step.fused_inputs[in.index], work.op));
    }
    works_.push_back(std::move(work));
  }
}

FusedOps::Source FusedOps::source_of(const Operand& operand, const Op& op) const {
  if (operand.kind == Operand::Kind::kNone) return {};
  Source source{.operand = operand};
  if (operand.shape.count() == out_.shape.count()) {
    source.kind = Source::Kind::kFull;
  } else if (operand.shape.count() == 1) {
    source.kind = Source::Kind::kOne;
  } else {
    const Cycle cycle = cycle_of(out_.shape, operand.shape, op.tag).value_or(Cycle{1, 1});
    source.kind = Source::Kind::kCycle;
    source.inner = cycle.inner;
    source.count = cycle.count;
  }
  return source;
}

/// The values of a source for the block; `room`: kBlock values for those that repeat.
Side FusedOps::side(const Place& place, const Source& source, float* room) const noexcept {
  switch (source.kind) {
    case Source::Kind::kAbsent:
      return {nullptr, true};
    case Source::Kind::kSlot:
      return {place.slot(source.slot), false};
    case Source::Kind::kFull:
      return {place.run.f32(source.operand) + place.first, false};
    case Source::Kind::kOne:
      return {place.run.f32(source.operand), true};
    case Source::Kind::kCycle:
      break;
  }
  const float* values = place.run.f32(source.operand);
  const std::size_t within = place.first % source.inner;
  if (source.inner - within >= place.n && source.inner > 1) {
    return {values + place.first / source.inner % source.count, true};
  }
  for (std::size_t i = 0; i < place.n;) {
    const std::size_t at = place.first + i, c = at / source.inner % source.count;
    if (source.inner == 1) {
      const std::size_t run = std::min(source.count - c, place.n - i);
      std::copy_n(values + c, run, room + i);
      i += run;
    } else {
      const std::size_t run = std::min(source.inner - at % source.inner, place.n - i);
      std::fill_n(room + i, run, values[c]);
      i += run;
    }
  }
  return {room, false};
}

void FusedOps::by_reference(const Op& op, std::span<const Side> sides, std::size_t n,
                            float* y) noexcept {
  std::array<TensorView, kMaxInputs> inputs{};
  const auto length = static_cast<std::int64_t>(n);
  for (std::size_t k = 0; k < sides.size(); ++k) {
    if (sides[k].data == nullptr) continue;
    inputs[k] = {DType::kF32, Shape{sides[k].one ? 1 : length},
                 reinterpret_cast<const std::byte*>(sides[k].data)};
  }
  const MutableTensorView output{DType::kF32, Shape{length}, reinterpret_cast<std::byte*>(y)};
  // On f32 these fail for nothing.
  static_cast<void>(op_info(op.tag).reference({.attrs = op.attrs,
                                               .inputs = std::span(inputs).first(sides.size()),
                                               .outputs = std::span(&output, 1)}));
}

void FusedOps::work(const Place& place, const Work& work) const noexcept {
  if (work.op.tag == OpTag::kCast) {
    const Operand& from = work.inputs[0].operand;
    return cast_integers(from.dtype, place.run.data(from), place.first, place.n,
                         place.slot(work.slot));
  }
  std::array<Side, kMaxInputs> sides{};
  for (std::size_t k = 0; k < work.inputs.size(); ++k) {
    sides[k] = side(place, work.inputs[k], place.scratch + (n_slots_ - 1 + k) * kBlock);
  }
  const auto in = std::span<const Side>(sides).first(work.inputs.size());
  float* y = place.slot(work.slot);
  const KernelTable& k = *place.run.k;
  if (const auto row = row_op(work.op); row && !in[0].one) {
    return k.map[static_cast<std::size_t>(*row)](in[0].data, place.n, y);
  }
  switch (work.op.tag) {
    case OpTag::kAdd:
    case OpTag::kSub:
    case OpTag::kMul:
    case OpTag::kDiv:
      return arithmetic(k, work.op.tag, in[0], in[1], place.n, y);
    default:
      break;
  }
  if (const auto e = element(work.op, in); e && !in[0].one) {
    return k.elements.map[static_cast<std::size_t>(e->op)](in[0].data, e->a, e->b, place.n, y);
  }
  if (work.op.tag == OpTag::kSin && !in[0].one) return sines(k, work.op, in[0].data, place.n, y);
  by_reference(work.op, in, place.n, y);
}

/// Large angles and what is not finite are the reference's, one by one, so that no value depends on
/// its neighbours.
void FusedOps::sines(const KernelTable& k, const Op& op, const float* x, std::size_t n,
                     float* y) noexcept {
  const auto map = k.elements.map[static_cast<std::size_t>(ElementOp::kSin)];
  float low_high[2];
  const bool finite = k.integers.range(x, n, low_high);
  if (finite && low_high[0] >= -kMaxAngle && low_high[1] <= kMaxAngle)
    return map(x, 0.0f, 0.0f, n, y);
  for (std::size_t i = 0; i < n; ++i) {
    const Side side{x + i, false};
    if (x[i] >= -kMaxAngle && x[i] <= kMaxAngle) {
      map(x + i, 0.0f, 0.0f, 1, y + i);
    } else {
      by_reference(op, {&side, 1}, 1, y + i);
    }
  }
}

void FusedOps::apply(const Run& run, std::byte* scratch, std::size_t first,
                     std::size_t n) const noexcept {
  const Place place{run, run.out(out_) + first, reinterpret_cast<float*>(scratch), first, n};
  for (const Work& w : works_) work(place, w);
}

namespace {

class FusedStep final : public PlainStep {
 public:
  FusedStep(const Step& step, Build& build) : ops_(step) {
    build.want_thread(ops_.scratch_bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t n = run.elements(ops_.output());
    for (Share s((n + FusedOps::kBlock - 1) / FusedOps::kBlock, thread, run.n_threads);
         s.begin < s.end; ++s.begin) {
      const std::size_t first = s.begin * FusedOps::kBlock;
      ops_.apply(run, run.thread_scratch[thread], first, std::min(FusedOps::kBlock, n - first));
    }
  }

 private:
  FusedOps ops_;
};

}  // namespace

Result<StepPtr> make_fused_step(const Step& step, Build& build) {
  return std::make_unique<FusedStep>(step, build);
}

}  // namespace cyb::cpu
