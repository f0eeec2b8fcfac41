// Inverse circular and the hyperbolic functions in f64.
#include <array>
#include <cmath>
#include <limits>

#include "ops/math/elementary.hpp"

namespace cyb::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPi = 0x1.921FB54442D18p+0;
constexpr double kLn2 = 0x1.62E42FEFA39EFp-1;

/// atan of 0 <= x <= 1: the angle is halved twice (tan(a/2) = t / (1 + sqrt(1 + t^2))), then
/// t (1 - t^2/3 + t^4/5 - ...) for t <= 0.199.
double atan_unit(double x) noexcept {
  double t = x / (1.0 + std::sqrt(1.0 + x * x));
  t = t / (1.0 + std::sqrt(1.0 + t * t));
  static constexpr std::array kCoefficients = {1.0 / 25, -1.0 / 23, 1.0 / 21, -1.0 / 19,
                                               1.0 / 17, -1.0 / 15, 1.0 / 13, -1.0 / 11,
                                               1.0 / 9,  -1.0 / 7,  1.0 / 5,  -1.0 / 3};
  const double t2 = t * t;
  double sum = 0.0;
  for (const double c : kCoefficients) sum = (sum + c) * t2;
  return 4.0 * (t + t * sum);
}

}  // namespace

double atan_f64(double x) noexcept {
  if (x != x || x == 0.0) return x;
  const double a = std::fabs(x);
  return std::copysign(a <= 1.0 ? atan_unit(a) : kHalfPi - atan_unit(1.0 / a), x);
}

double asin_f64(double x) noexcept {
  if (!(std::fabs(x) <= 1.0)) return kNaN;
  if (std::fabs(x) == 1.0) return std::copysign(kHalfPi, x);
  return atan_f64(x / std::sqrt((1.0 - x) * (1.0 + x)));
}

double acos_f64(double x) noexcept {
  if (!(std::fabs(x) <= 1.0)) return kNaN;
  if (x == -1.0) return 2.0 * kHalfPi;
  return 2.0 * atan_f64(std::sqrt((1.0 - x) / (1.0 + x)));
}

double tan_f64(double x) noexcept {
  if (x == 0.0) return x;
  const SinCos y = sincos_f64(x);
  return y.sin / y.cos;
}

double sinh_f64(double x) noexcept {
  if (x != x || x == 0.0) return x;
  const double a = std::fabs(x);
  double y = 0.0;
  if (a < 1.0) {
    const double e = expm1_f64(a);
    y = 0.5 * (e + e / (e + 1.0));
  } else if (a < 700.0) {
    const double e = exp_f64(a);
    y = 0.5 * (e - 1.0 / e);
  } else {
    const double half = exp_f64(0.5 * a);
    y = 0.5 * half * half;
  }
  return std::copysign(y, x);
}

double cosh_f64(double x) noexcept {
  if (x != x) return x;
  const double a = std::fabs(x);
  if (a < 700.0) {
    const double e = exp_f64(a);
    return 0.5 * (e + 1.0 / e);
  }
  const double half = exp_f64(0.5 * a);
  return 0.5 * half * half;
}

double asinh_f64(double x) noexcept {
  const double a = std::fabs(x);
  if (!(a > 0.0) || a == kInf) return x;
  if (a > 0x1p30) return std::copysign(log_f64(a) + kLn2, x);
  return std::copysign(log1p_f64(a + a * a / (1.0 + std::sqrt(a * a + 1.0))), x);
}

double acosh_f64(double x) noexcept {
  if (!(x >= 1.0)) return kNaN;
  if (x > 0x1p30) return log_f64(x) + kLn2;
  const double t = x - 1.0;
  return log1p_f64(t + std::sqrt(2.0 * t + t * t));
}

double atanh_f64(double x) noexcept {
  const double a = std::fabs(x);
  if (x == 0.0) return x;
  if (!(a <= 1.0)) return kNaN;
  if (a == 1.0) return std::copysign(kInf, x);
  return std::copysign(0.5 * log1p_f64(2.0 * a / (1.0 - a)), x);
}

}  // namespace cyb::math
