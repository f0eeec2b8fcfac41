// The copy behind Transpose and Permute: y[i_perm] = x[i].
#pragma once

#include <span>

#include "ops/op.hpp"

namespace cyb::layout {

/// True if `perm` lists 0..rank-1, each once.
bool is_permutation(std::span<const std::int64_t> perm, std::size_t rank);
std::vector<Dim> permuted(const TensorSpec& spec, std::span<const std::int64_t> perm);
/// Dimension i of y is dimension perm[i] of x.
void permute_copy(const TensorView& x, std::span<const std::int64_t> perm,
                  const MutableTensorView& y);

}  // namespace cyb::layout
