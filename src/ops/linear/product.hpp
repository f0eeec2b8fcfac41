// NumPy's matmul: shapes, batches and the product itself, for float, integer and quantised
// products.
#pragma once

#include <vector>

#include "ops/typed.hpp"

namespace cyb::linear {

/// Dimensions of a [..., M, K] times b [..., K, N]; vectors lose their dimension.
Result<std::vector<Dim>> matmul_dims(const TensorSpec& a, const TensorSpec& b);

struct MatmulShape {
  std::size_t m, k, n;
  std::vector<std::size_t> a_offsets, b_offsets;  // element offsets of each batch's matrices
  MatmulShape(const Shape& a, const Shape& b);
};

/// y [M, N] = a [M, K] b [K, N], each sum in the reference order.
template <class C>
void multiply(const MatmulShape& s, const C* a, const C* b, C* y) {
  for (std::size_t i = 0; i < s.m; ++i) {
    for (std::size_t j = 0; j < s.n; ++j) {
      ref::Sum<C> sum;
      for (std::size_t t = 0; t < s.k; ++t) sum.add(ref::multiply(a[i * s.k + t], b[t * s.n + j]));
      y[i * s.n + j] = sum.value();
    }
  }
}

}  // namespace cyb::linear
