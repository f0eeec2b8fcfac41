// Permuting copies by element size.
#include "ops/layout/permute_copy.hpp"

#include <array>
#include <cstring>

#include "ops/values.hpp"

namespace cyb::layout {

bool is_permutation(std::span<const std::int64_t> perm, std::size_t rank) {
  if (perm.size() != rank || rank > Shape::kMaxRank) return false;
  std::array<bool, Shape::kMaxRank> seen{};
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(p)])
      return false;
    seen[static_cast<std::size_t>(p)] = true;
  }
  return true;
}

std::vector<Dim> permuted(const TensorSpec& spec, std::span<const std::int64_t> perm) {
  std::vector<Dim> dims;
  for (const std::int64_t p : perm) dims.push_back(spec.dims[static_cast<std::size_t>(p)]);
  return dims;
}

void permute_copy(const TensorView& x, std::span<const std::int64_t> perm,
                  const MutableTensorView& y) {
  const std::size_t rank = perm.size(), bytes = ref::element_bytes(x.dtype);
  const auto total = static_cast<std::size_t>(y.shape.count());
  if (total == 0) return;
  // Stride in x of each dimension of y, in bytes; trailing dimensions that stay are copied as one
  // run.
  std::array<std::size_t, Shape::kMaxRank> x_strides{}, strides{}, at{};
  std::size_t stride = bytes;
  for (std::size_t i = rank; i-- > 0;) {
    x_strides[i] = stride;
    stride *= ref::extent(x.shape, i);
  }
  for (std::size_t i = 0; i < rank; ++i) strides[i] = x_strides[static_cast<std::size_t>(perm[i])];
  std::size_t outer = rank, run = bytes;
  while (outer > 0 && perm[outer - 1] == static_cast<std::int64_t>(outer - 1)) {
    --outer;
    run *= ref::extent(y.shape, outer);
  }
  std::size_t source = 0;
  for (std::size_t done = 0; done < total * bytes; done += run) {
    std::memcpy(y.data + done, x.data + source, run);
    for (std::size_t i = outer; i-- > 0;) {
      source += strides[i];
      if (++at[i] < ref::extent(y.shape, i)) break;
      source -= at[i] * strides[i];
      at[i] = 0;
    }
  }
}

}  // namespace cyb::layout
