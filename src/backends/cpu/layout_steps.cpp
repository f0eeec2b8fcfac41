// Rules per op, for the walk that decides layouts.
#include "backends/cpu/layout_steps.hpp"

#include <algorithm>
#include <cmath>

#include "backends/cpu/fused.hpp"
#include "ops/elementwise.hpp"
#include "ops/layout/concat.hpp"
#include "ops/layout/permute.hpp"
#include "ops/layout/split.hpp"

namespace cyb::cpu {
namespace {

bool fixed(const Operand& operand) {
  return operand.rows == RowKind::kFixed && operand.past_axis < 0;
}
bool absent(const Operand& operand) {
  return operand.kind == Operand::Kind::kNone;
}
bool fixed_f32(const Operand& operand) {
  return absent(operand) || (fixed(operand) && operand.dtype == DType::kF32);
}

std::vector<std::int64_t> order(std::size_t rank, bool to_last) {
  const auto n = static_cast<std::int64_t>(rank);
  std::vector<std::int64_t> dims = {0};
  if (!to_last) dims.push_back(n - 1);
  for (std::int64_t d = to_last ? 2 : 1; d < (to_last ? n : n - 1); ++d) dims.push_back(d);
  if (to_last) dims.push_back(1);
  return dims;
}

Shape permuted(const Shape& shape, bool to_last) {
  if (shape.rank() < 3) return shape;
  const std::vector<std::int64_t> dims = order(shape.rank(), to_last);
  Shape out = shape;
  for (std::size_t i = 0; i < dims.size(); ++i) out[i] = shape[static_cast<std::size_t>(dims[i])];
  return out;
}

std::int64_t axis_with_channels_last(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < 0) axis += n;
  return axis == 0 ? 0 : axis == 1 ? n - 1 : axis - 1;
}

bool finite(const float* values, std::int64_t n) {
  return std::all_of(values, values + n, [](float v) { return std::isfinite(v); });
}

bool is_stored(const Operand& operand) {
  return operand.kind == Operand::Kind::kWeight && cpu_weight(operand)->vector() != nullptr &&
         cpu_weight(operand)->shape().count() == operand.shape.count();
}

bool elementwise_follows(const Step& step) {
  const std::size_t rank = step.outputs[0].shape.rank();
  if (step.op.tag == OpTag::kPRelu && step.inputs[1].shape.rank() == 1) return false;
  return std::ranges::all_of(step.inputs,
                             [&](const Operand& in) { return in.shape.rank() <= rank; });
}

}  // namespace

Shape channels_last(const Shape& shape) {
  return permuted(shape, true);
}
Shape channels_first(const Shape& shape) {
  return permuted(shape, false);
}

Shape with_rank(const Shape& shape, std::size_t rank) {
  std::vector<std::int64_t> dims(rank - std::min(rank, shape.rank()), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape(dims);
}

bool keeps_channels(const Shape& a, const Shape& b) {
  return a.rank() >= 3 && b.rank() >= 3 && a[0] == b[0] && a[1] == b[1] && a.count() == b.count();
}

Attrs permutation(std::size_t rank, bool to_last) {
  return {{order(rank, to_last)}};
}
Attrs identity(std::size_t rank) {
  std::vector<std::int64_t> dims;
  for (std::size_t d = 0; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  return {{dims}};
}

bool transposes(const Step& step, bool to_last) {
  const bool moves = step.op.tag == OpTag::kPermute || step.op.tag == OpTag::kTranspose;
  if (!moves || step.inputs.size() != 1 || !fixed_f32(step.inputs[0])) return false;
  const std::size_t rank = step.inputs[0].shape.rank();
  if (rank < 3) return false;
  std::vector<std::int64_t> dims = step.op.attrs.list(0);
  if (dims.empty()) {
    dims = identity(rank).list(0);
    std::swap(dims[rank - 1], dims[rank - 2]);
  }
  return dims == order(rank, to_last);
}

bool is_affine(const Step& step) {
  if (step.op.tag != OpTag::kBatchNorm || step.inputs.size() != 5) return false;
  const auto stored = [](const Operand& in) {
    return fixed_f32(in) && is_stored(in) && finite(cpu_weight(in)->vector(), in.shape.count());
  };
  if (!std::all_of(step.inputs.begin() + 1, step.inputs.end(), stored)) return false;
  const float* variance = cpu_weight(step.inputs[4])->vector();
  return std::all_of(variance, variance + step.inputs[4].shape.count(),
                     [&](float v) { return v + step.op.attrs.f(0) > 0.0f; });
}

bool is_pixel_op(OpTag tag) {
  switch (tag) {
    case OpTag::kMaxPool:
    case OpTag::kResize:
    case OpTag::kReduce:
    case OpTag::kReduceSum:
    case OpTag::kReduceMean:
      return true;
    default:
      return false;
  }
}

Step shapes_last(const Step& original) {
  Step step = original;
  const std::size_t rank = step.outputs[0].shape.rank();
  const auto turn = [&](Operand& operand) {
    if (absent(operand) || operand.shape.count() == 1 || operand.shape.rank() > rank) return;
    operand.shape = channels_last(with_rank(operand.shape, rank));
  };
  const bool first_alone = !is_elementwise(step.op.tag);
  for (std::size_t k = 0; k < step.inputs.size(); ++k) {
    if (k == 0 || !first_alone) turn(step.inputs[k]);
  }
  std::ranges::for_each(step.fused_inputs, turn);
  std::ranges::for_each(step.outputs, turn);
  return step;
}

Op op_with_channels_last(const Op& op, std::size_t rank) {
  if (op.tag == OpTag::kConcat) {
    return {op.tag, {{axis_with_channels_last(ConcatAttrs::from(op.attrs).axis, rank)}}};
  }
  if (op.tag == OpTag::kSplit) {
    const SplitAttrs a = SplitAttrs::from(op.attrs);
    return {op.tag, {{axis_with_channels_last(a.axis, rank), a.sizes}}};
  }
  return op;
}

bool can_follow(const Step& step, const Plan& plan) {
  const std::size_t rank = step.outputs[0].shape.rank();
  if (step.inputs.empty() || absent(step.inputs[0])) return false;
  const auto like_first = [&](const Operand& o) { return fixed_f32(o) && o.shape.rank() == rank; };
  bool follows = false;
  switch (step.op.tag) {
    case OpTag::kConcat:
    case OpTag::kSplit:
      follows = std::ranges::all_of(step.inputs, like_first) &&
                std::ranges::all_of(step.outputs, like_first);
      break;
    case OpTag::kReduce:
    case OpTag::kReduceSum:
    case OpTag::kReduceMean:
      return step.fused.empty() && step.inputs[0].shape.rank() >= 3 && fixed_f32(step.inputs[0]) &&
             fixed_f32(step.outputs[0]) && has_pixel_step(step, plan);
    case OpTag::kMaxPool:
    case OpTag::kResize:
      follows = like_first(step.inputs[0]) && has_pixel_step(step, plan);
      break;
    default:
      follows = is_elementwise(step.op.tag) && std::ranges::all_of(step.inputs, fixed_f32) &&
                elementwise_follows(step);
  }
  if (rank < 3 || !like_first(step.outputs[0]) ||
      !std::ranges::all_of(step.fused_inputs, fixed_f32))
    return false;
  return follows && (step.fused.empty() || can_fuse(shapes_last(step)));
}

Result<conv::Problem> conv_problem(const Step& step) {
  conv::Window window{
      {},   step.op.attrs.list(0), step.op.attrs.list(1), step.op.attrs.list(2), step.op.attrs.i(4),
      false};
  const Operand& w = step.inputs[1];
  CYB_ASSIGN(window.kernel, conv::kernel_of(TensorSpec::of(w.dtype, w.shape)));
  return conv::problem_of(channels_first(step.inputs[0].shape), w.shape,
                          channels_first(step.outputs[0].shape), window,
                          static_cast<std::size_t>(step.op.attrs.i(3)));
}

bool is_direct(const Step& step) {
  const bool transposed = step.op.tag == OpTag::kConvTranspose;
  if (step.op.tag != OpTag::kConv && !transposed) return false;
  const Operand &x = step.inputs[0], &w = step.inputs[1], &y = step.outputs[0];
  if (!fixed_f32(x) || !fixed_f32(w) || !fixed_f32(y) || !is_stored(w)) return false;
  if (step.inputs.size() > 2 && !absent(step.inputs[2]) && !is_stored(step.inputs[2])) return false;
  if (x.shape.rank() < 3 || x.shape.rank() > 5 || y.shape.count() == 0 || x.shape.count() == 0)
    return false;
  if (transposed && !has_windows_apart(step)) return false;
  return w.shape.count() > 0 && finite(cpu_weight(w)->vector(), w.shape.count());
}

}  // namespace cyb::cpu
