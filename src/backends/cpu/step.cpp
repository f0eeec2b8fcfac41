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

std::size_t Build::rope(RopeConfig config) {
  const auto found = std::find(ropes.begin(), ropes.end(), config);
  if (found != ropes.end()) return static_cast<std::size_t>(found - ropes.begin());
  ropes.push_back(std::move(config));
  return ropes.size() - 1;
}

}  // namespace cyb::cpu
