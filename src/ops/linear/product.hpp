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

/// Sum of a[t]·b[t] in the reference order.
template <class C>
C dot(const C* a, const C* b, std::size_t n) {
  if constexpr (std::is_same_v<C, float>) {
    return ref::dot(a, b, n);
  } else {
    ref::Sum<C> sum;
    for (std::size_t t = 0; t < n; ++t) sum.add(ref::multiply(a[t], b[t]));
    return sum.value();
  }
}

/// y [M, N] = a [M, K] b [K, N]. A column of b is gathered once, then used for every row of a;
/// columns are shared among the threads.
template <class C>
void multiply(const MatmulShape& s, const C* a, const C* b, C* y, ThreadPool* pool = nullptr) {
  ref::parallel(pool, s.n, s.m * s.n * s.k, [&](std::size_t begin, std::size_t end) {
    std::vector<C> column(s.k);
    for (std::size_t j = begin; j < end; ++j) {
      for (std::size_t t = 0; t < s.k; ++t) column[t] = b[t * s.n + j];
      for (std::size_t i = 0; i < s.m; ++i) y[i * s.n + j] = dot(a + i * s.k, column.data(), s.k);
    }
  });
}

}  // namespace cyb::linear
