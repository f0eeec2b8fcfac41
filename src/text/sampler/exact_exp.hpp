// exp(x) for x <= 0 in f64, the same bits on every machine: argument reduction by ln 2 in two
// parts, a Taylor polynomial of degree 13 on |r| <= ln(2)/2 (error below 1 ulp of the result),
// scaling by a power of two.
#pragma once

#include <bit>
#include <cstdint>

namespace cyb::text {

inline double exact_exp(double x) noexcept {
  constexpr double kLog2E = 1.4426950408889634, kRound = 6755399441055744.0;  // 1.5 * 2^52
  constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
  constexpr double kLowest = -708.0;  // below, the result counts as 0
  const bool tiny = !(x > kLowest);
  const double shifted = (tiny ? kLowest : x) * kLog2E + kRound;  // its low bits are n
  const double n = shifted - kRound;
  const double r = ((tiny ? kLowest : x) - n * kLn2High) - n * kLn2Low;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // Multiplied by 2^n in the exponent's bits: no branches and no conversions, so that loops
  // vectorise.
  const double value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(p) +
                                             (std::bit_cast<std::uint64_t>(shifted) << 52));
  return tiny ? 0.0 : value;
}

}  // namespace cyb::text
