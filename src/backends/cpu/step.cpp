// Operand access and build bookkeeping.
#include "backends/cpu/step.hpp"

#include <algorithm>

namespace cyb::cpu {

const std::byte* Run::data(const Operand& operand) const noexcept {
  switch (operand.kind) {
    case Operand::Kind::kArena:
      return arena + operand.offset;
    case Operand::Kind::kIds:
      return reinterpret_cast<const std::byte*>(params.ids.data());
    case Operand::Kind::kPositions:
      return reinterpret_cast<const std::byte*>(params.positions.data());
    case Operand::Kind::kOutputRows:
      return reinterpret_cast<const std::byte*>(params.output_rows.data());
    case Operand::Kind::kLength:
      return reinterpret_cast<const std::byte*>(&length);
    case Operand::Kind::kTensor:
      return params.tensors[operand.index].data;
    case Operand::Kind::kWeight: {
      const CpuWeight* weight = cpu_weight(operand);
      if (weight->vector() != nullptr) return reinterpret_cast<const std::byte*>(weight->vector());
      return weight->source().data;
    }
    case Operand::Kind::kNone:
      break;
  }
  return nullptr;
}

std::size_t Run::rows(const Operand& operand) const noexcept {
  const Shape shape = run_shape(operand, params);
  std::int64_t n = 1;
  for (std::size_t i = 0; i + 1 < shape.rank(); ++i) n *= shape[i];
  return static_cast<std::size_t>(n);
}

void arithmetic(const KernelTable& k, OpTag op, Side a, Side b, std::size_t n, float* y) noexcept {
  if (a.one && b.one) {
    const float value = op == OpTag::kAdd   ? *a.data + *b.data
                        : op == OpTag::kSub ? *a.data - *b.data
                        : op == OpTag::kMul ? *a.data * *b.data
                                            : *a.data / *b.data;
    std::fill_n(y, n, value);
  } else if (op == OpTag::kDiv) {
    const ElementKernels& e = k.elements;
    if (b.one)
      return e.map[static_cast<std::size_t>(ElementOp::kDivideBy)](a.data, *b.data, 0.0f, n, y);
    if (a.one)
      return e.map[static_cast<std::size_t>(ElementOp::kDivided)](b.data, *a.data, 0.0f, n, y);
    e.div(a.data, b.data, n, y);
  } else if (b.one) {
    if (op == OpTag::kMul) return k.scale(a.data, *b.data, n, y);
    k.offset(a.data, op == OpTag::kSub ? -*b.data : *b.data, n, y);  // a - b is a + (-b) exactly
  } else if (a.one) {
    if (op == OpTag::kMul) return k.scale(b.data, *a.data, n, y);
    if (op == OpTag::kAdd) return k.offset(b.data, *a.data, n, y);
    for (std::size_t i = 0; i < n; ++i) y[i] = *a.data - b.data[i];
  } else {
    const auto f = op == OpTag::kAdd ? k.add : op == OpTag::kSub ? k.sub : k.mul;
    f(a.data, b.data, n, y);
  }
}

/// Memory is used again: an operand of the same place, dtype and shape may be another one, which
/// errs to the safe side.
bool Build::is_read(const Operand& output) const noexcept {
  if (plan == nullptr) return true;
  const auto same = [&](const Operand& o) {
    return o.kind == output.kind && o.offset == output.offset && o.dtype == output.dtype;
  };
  return std::ranges::any_of(plan->outputs, same) ||
         std::ranges::any_of(plan->steps, [&](const Step& s) {
           return std::ranges::any_of(s.inputs, same) || std::ranges::any_of(s.fused_inputs, same);
         });
}

std::size_t Build::rope(RopeConfig config) {
  const auto found = std::find(ropes.begin(), ropes.end(), config);
  if (found != ropes.end()) return static_cast<std::size_t>(found - ropes.begin());
  ropes.push_back(std::move(config));
  return ropes.size() - 1;
}

Share grains(std::size_t n, const Run& run, unsigned thread) noexcept {
  constexpr std::size_t kGrain = 256;
  Share s((n + kGrain - 1) / kGrain, thread, run.n_threads);
  s.begin = std::min(n, s.begin * kGrain);
  s.end = std::min(n, s.end * kGrain);
  return s;
}

}  // namespace cyb::cpu
