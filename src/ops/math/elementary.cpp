// exp, log and their kin, tanh, sigmoid in f64 by Taylor series on reduced arguments.
#include "ops/math/elementary.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cyb::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts; the first has 32 trailing zero bits, so n * kLn2High is exact for |n| < 2^20.
constexpr double kLn2High = 0x1.62E42FEEp-1;
constexpr double kLn2Low = 0x1.A39EF35793C76p-33;
constexpr double kLn2 = 0x1.62E42FEFA39EFp-1;
constexpr double kLog2E = 0x1.71547652B82FEp+0;

/// 2^n for -1022 <= n <= 1023.
double power_of_two(std::int64_t n) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

/// 1/k! for k = N-1..0, the coefficients of e^r from the smallest.
template <std::size_t N>
constexpr std::array<double, N> inverse_factorials() {
  std::array<double, N> out{};
  double factorial = 1.0;
  for (std::size_t k = 0; k < N; ++k) {
    if (k > 1) factorial *= static_cast<double>(k);
    out[N - 1 - k] = 1.0 / factorial;
  }
  return out;
}

/// e^r - 1 for |r| <= 1: r (1 + r/2! + ... + r^19/20!).
double expm1_series(double r) noexcept {
  static constexpr auto kCoefficients = inverse_factorials<21>();
  double sum = 0.0;
  for (std::size_t i = 0; i < 20; ++i) sum = sum * r + kCoefficients[i];
  return sum * r;
}

/// 2 artanh s for |s| <= 0.1716: 2s (1 + s^2/3 + s^4/5 + ...).
double artanh_twice(double s) noexcept {
  const double s2 = s * s;
  static constexpr std::array kCoefficients = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
                                               1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                                               1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  double sum = 0.0;
  for (const double c : kCoefficients) sum = sum * s2 + c;
  return 2.0 * s * sum;
}

}  // namespace

double exp_f64(double x) noexcept {
  if (x != x) return x;
  if (x > 709.79) return kInf;
  if (x < -745.2) return 0.0;
  const double n = (x * kLog2E + 0x1.8p52) - 0x1.8p52;  // nearest integer
  const double r = (x - n * kLn2High) - n * kLn2Low;    // |r| <= ln 2 / 2
  static constexpr auto kCoefficients = inverse_factorials<14>();
  double sum = 0.0;
  for (const double c : kCoefficients) sum = sum * r + c;
  const auto exponent = static_cast<std::int64_t>(n);
  const std::int64_t half = exponent / 2;  // two steps: the result may be subnormal
  return sum * power_of_two(half) * power_of_two(exponent - half);
}

double exp2_f64(double x) noexcept {
  if (x != x) return x;
  if (x >= 1024.0) return kInf;
  if (x < -1080.0) return 0.0;
  const double n = (x + 0x1.8p52) - 0x1.8p52;
  const double sum = 1.0 + expm1_series((x - n) * kLn2);
  const auto exponent = static_cast<std::int64_t>(n);
  const std::int64_t half = exponent / 2;
  return sum * power_of_two(half) * power_of_two(exponent - half);
}

double expm1_f64(double x) noexcept {
  if (std::fabs(x) < 0.5) return x == 0.0 ? x : expm1_series(x);
  return exp_f64(x) - 1.0;
}

namespace {

struct Logarithm {
  double exponent;  // x = 2^exponent m
  double log_m;     // |log m| <= ln 2 / 2
};

/// x positive and finite.
Logarithm log_parts(double x) noexcept {
  std::int64_t exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<std::int64_t>(bits >> 52) - 1023;
  bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  double m = std::bit_cast<double>(bits);  // 1 <= m < 2
  if (m > 0x1.6A09E667F3BCDp+0) {          // keep m in [1/sqrt 2, sqrt 2]
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 artanh((m - 1) / (m + 1)).
  return {static_cast<double>(exponent), artanh_twice((m - 1.0) / (m + 1.0))};
}

}  // namespace

double log_f64(double x) noexcept {
  if (x != x || x == kInf) return x;
  if (x == 0.0) return -kInf;
  if (x < 0.0) return kNaN;
  const Logarithm l = log_parts(x);
  return l.exponent * kLn2High + (l.log_m + l.exponent * kLn2Low);
}

double log2_f64(double x) noexcept {
  if (x != x || x == kInf) return x;
  if (x == 0.0) return -kInf;
  if (x < 0.0) return kNaN;
  const Logarithm l = log_parts(x);
  return l.exponent + l.log_m * kLog2E;
}

double log1p_f64(double x) noexcept {
  if (x > -0.25 && x < 0.4) return x == 0.0 ? x : artanh_twice(x / (2.0 + x));
  return log_f64(1.0 + x);
}

double tanh_f64(double x) noexcept {
  if (x != x) return x;
  const double a = std::fabs(x);
  double y = 1.0;
  if (a < 0.5) {
    const double em1 = expm1_series(2.0 * a);
    y = em1 / (em1 + 2.0);
  } else if (a < 20.0) {
    y = 1.0 - 2.0 / (exp_f64(2.0 * a) + 1.0);
  }
  return std::copysign(y, x);
}

double sigmoid_f64(double x) noexcept {
  return 1.0 / (1.0 + exp_f64(-x));
}

}  // namespace cyb::math
