// Offsets of kept and reduced elements.
#include "ops/reduce/axes.hpp"

namespace cyb::ref {
namespace {

std::vector<std::size_t> offsets(const Shape& shape, const AxisMask& mask, bool wanted) {
  const Strides all = strides_of(shape);
  Shape part;
  Strides strides{};
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  std::size_t n = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (mask[d] != wanted) continue;
    dims[n] = shape[d];
    strides[n++] = all[d];
  }
  part = Shape(std::span(dims.data(), n));
  std::vector<std::size_t> out;
  out.reserve(static_cast<std::size_t>(part.count()));
  for_each_index(part,
                 [&](std::size_t, const Index& index) { out.push_back(dot(index, strides, n)); });
  return out;
}

}  // namespace

Reduced::Reduced(const Shape& shape, const AxisMask& mask)
    : kept(offsets(shape, mask, false)), reduced(offsets(shape, mask, true)) {}

AxisMask axis_mask(std::span<const std::int64_t> axes, std::size_t rank) noexcept {
  AxisMask mask{};
  for (std::size_t d = 0; d < rank && axes.empty(); ++d) mask[d] = true;
  for (const std::int64_t a : axes) mask[axis_of(a, rank)] = true;
  return mask;
}

}  // namespace cyb::ref
