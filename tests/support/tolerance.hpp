// The one place of numeric tolerances: the metric and the table of docs/ir.md. Never loosened to
// pass a test.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "backends/backend.hpp"
#include "ops/op.hpp"

namespace cyb::test {

/// max|a_i - b_i| / max(1, max|b_i|), b = reference; infinite if a NaN or Inf is on one side only
/// or differs.
inline double error_of(std::span<const float> a, std::span<const float> b) {
  constexpr double kFailure = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kFailure;
  double largest = 1.0, difference = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      const bool same = (std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i];
      if (!same) return kFailure;
      continue;
    }
    largest = std::fmax(largest, std::fabs(static_cast<double>(b[i])));
    difference = std::fmax(difference, std::fabs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

/// `k`: length of the dot products (class M). Class X: 0, equal.
inline double tolerance(ToleranceClass cls, DType dtype, std::size_t k = 64) {
  const bool half = dtype == DType::kF16;
  switch (cls) {
    case ToleranceClass::kX:
      return 0.0;
    case ToleranceClass::kE:
      return half ? 1e-3 : 1e-6;
    case ToleranceClass::kM:
      return (half ? 1e-3 : 1e-6) * std::fmax(1.0, std::sqrt(static_cast<double>(k) / 64.0));
    case ToleranceClass::kA:
      return half ? 1e-2 : 1e-5;
    default:
      return half ? 1e-2 : 1e-4;
  }
}

/// Where activations are rounded to integer blocks before a product with block weights; `outliers`:
/// some are 30 or more times the rest.
inline double quantised_tolerance(NumericMode mode, bool outliers = false) {
  return mode == NumericMode::kQ8Act ? (outliers ? 2e-2 : 1e-2) : 1e-4;
}

// Whole models: one decoder layer; curated against graph; a backend against the reference.
inline constexpr double kLayerF32 = 1e-5;
inline constexpr double kCuratedGraphF32 = 1e-5, kCuratedGraphBlocks = 1e-2;
inline constexpr double kBackendF32 = 1e-4, kBackendF16 = 1e-2, kBackendBlocks = 5e-2;

}  // namespace cyb::test
