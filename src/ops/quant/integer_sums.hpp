// Sums of products of bytes less their zero points, in i32 that wraps: the order of such a sum does
// not show, so these loops run along memory, not in the order of the other references.
#pragma once

#include <vector>

#include "ops/conv/geometry.hpp"
#include "ops/linear/product.hpp"

namespace cyb::quant {

/// x - zero: -255..255.
using Shifted = std::vector<std::int16_t>;

/// x - zero of i8 or u8, with the zero of axis element (i / inner) % n; zero is one value or n.
Shifted shifted(const TensorView& x, const TensorView& zero, std::size_t inner, std::size_t n);

/// y [batches, M, N] = a [..., M, K] b [..., K, N]; rows are shared among the threads.
void integer_matmul(const linear::MatmulShape& shape, const Shifted& a, const Shifted& b,
                    std::int32_t* y, ThreadPool* pool);

/// sums [out...] of output channel o of batch b, in the notation of conv::Problem.
void integer_plane(const conv::Problem& p, const std::int16_t* x, const std::int16_t* w,
                   std::int32_t* sums);

}  // namespace cyb::quant
