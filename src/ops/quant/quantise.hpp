// One number to a quantised integer, and operands of integer products without their zero points.
#pragma once

#include <cmath>
#include <limits>

#include "ops/typed.hpp"

namespace cyb::quant {

/// round(v / scale) + zero, halves to even, saturated; NaN gives zero.
template <class T>
T quantise(float v, float scale, std::int64_t zero) noexcept {
  using Limits = std::numeric_limits<T>;
  const float q = std::nearbyint(v / scale);
  if (q != q) return static_cast<T>(zero);
  const double sum = static_cast<double>(q) + static_cast<double>(zero);
  if (sum >= static_cast<double>(Limits::max())) return Limits::max();
  if (sum <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  return static_cast<T>(sum);
}

}  // namespace cyb::quant
