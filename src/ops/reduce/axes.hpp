// The elements of a tensor seen as [kept, reduced]: offsets of both, row-major.
#pragma once

#include <vector>

#include "ops/typed.hpp"

namespace cyb::ref {

using AxisMask = std::array<bool, Shape::kMaxRank>;

struct Reduced {
  std::vector<std::size_t> kept;     // offset of each result's first element
  std::vector<std::size_t> reduced;  // offsets of the elements of one result
  Reduced(const Shape& shape, const AxisMask& mask);
};

/// Mask of checked axes; no axes: all.
AxisMask axis_mask(std::span<const std::int64_t> axes, std::size_t rank) noexcept;

}  // namespace cyb::ref
