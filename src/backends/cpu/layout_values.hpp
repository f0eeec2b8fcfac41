// Values of a plan while it gets its layouts: one per tensor that a step writes and one per copy in
// the other order, placed in memory by lifetime at the end.
#pragma once

#include <vector>

#include "backends/cpu/layout.hpp"

namespace cyb::cpu {

inline constexpr std::uint32_t kNoValue = UINT32_MAX;

struct LayoutValue {
  Shape shape;  // [B, C, axes...] where `last`
  DType dtype;
  bool last = false;              // channels last, and that differs from row-major
  std::uint32_t root;             // value whose memory it is
  std::uint32_t copy = kNoValue;  // in the other order
};

/// A step whose operands are values; kNoValue: not in the arena.
struct DraftStep {
  LaidStep laid;
  std::vector<std::uint32_t> inputs, fused_inputs, outputs;
  std::uint32_t shares = kNoValue;  // value whose memory the output may take over
};

/// Both orders are the same.
bool is_trivial(const Shape& shape);

/// Offsets for all values; `outputs`: values that live to the end.
LaidPlan place(std::vector<DraftStep> drafts, const std::vector<LayoutValue>& values,
               const std::vector<std::uint32_t>& outputs);

}  // namespace cyb::cpu
