// erf, erfc, pow and the activations built from them, in f64.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/math/elementary.hpp"

namespace cyb::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoOverSqrtPi = 0x1.20DD750429B6Dp+0;
constexpr double kSqrtHalf = 0x1.6A09E667F3BCDp-1;
constexpr double kSqrtTwoOverPi = 0x1.9884533D43651p-1;

/// erfc x for x >= 2: e^(-x^2) / (x sqrt pi) over the continued fraction 1 + a/(1 + 2a/(1 + ...)),
/// a = 1/(2x^2) (Abramowitz and Stegun 7.1.14), from its 60th term down.
double erfc_tail(double x) noexcept {
  const double a = 0.5 / (x * x);
  double fraction = 1.0;
  for (int k = 60; k >= 1; --k) fraction = 1.0 + k * a / fraction;
  return exp_f64(-x * x) / x * (0.5 * kTwoOverSqrtPi) / fraction;
}

/// base^n by squaring, exact where the result fits; n <= 64.
double integer_power(double base, unsigned n) noexcept {
  double result = 1.0;
  for (; n != 0; n >>= 1u) {
    if ((n & 1u) != 0) result *= base;
    base *= base;
  }
  return result;
}

/// True for finite integers; `odd` says which.
bool is_integer(double v, bool& odd) noexcept {
  odd = false;
  const double a = std::fabs(v);
  if (!(a < kInf)) return false;
  if (a >= 0x1p53) return true;
  const auto n = static_cast<std::int64_t>(a);
  odd = (n & 1) != 0;
  return static_cast<double>(n) == a;
}

/// Powers of 0 and of infinities: |base|^exponent is 0 or infinite.
double extreme_power(double base, double exponent, bool odd) noexcept {
  const bool zero = base == 0.0;
  const double magnitude = zero == (exponent > 0.0) ? 0.0 : kInf;
  return odd ? std::copysign(magnitude, base) : magnitude;
}

}  // namespace

// erf x = 2/sqrt(pi) e^(-x^2) sum_n x (2x^2)^n / (1·3·5···(2n+1)) (Abramowitz and Stegun 7.1.6):
// all terms have one sign, nothing cancels.
double erf_f64(double x) noexcept {
  if (x != x) return x;
  const double a = std::fabs(x);
  if (a > 6.0) return std::copysign(1.0, x);
  const double x2 = 2.0 * x * x;
  double term = x;
  double sum = x;
  for (int n = 1; n < 200; ++n) {
    term = term * x2 / (2 * n + 1);
    const double next = sum + term;
    if (next == sum) break;
    sum = next;
  }
  return kTwoOverSqrtPi * exp_f64(-x * x) * sum;
}

double erfc_f64(double x) noexcept {
  if (x != x) return x;
  if (x > 27.5) return 0.0;
  if (x >= 2.0) return erfc_tail(x);
  if (x <= -2.0) return x < -6.0 ? 2.0 : 2.0 - erfc_tail(-x);
  return 1.0 - erf_f64(x);
}

double softplus_f64(double x) noexcept {
  return x > 0.0 ? x + log1p_f64(exp_f64(-x)) : log1p_f64(exp_f64(x));
}

// tanh(ln(1 + e)) = (e^2 + 2e) / (e^2 + 2e + 2), e = e^x.
double mish_f64(double x) noexcept {
  if (x > 40.0) return x;
  const double e = exp_f64(x);
  const double n = e * (e + 2.0);
  return x * (n / (n + 2.0));
}

double gelu_f64(double x) noexcept {
  return x * (0.5 * erfc_f64(-x * kSqrtHalf));
}

// (1 + tanh z) / 2 = sigmoid(2z): nothing cancels.
double gelu_tanh_f64(double x) noexcept {
  return x * sigmoid_f64(2.0 * kSqrtTwoOverPi * (x + 0.044715 * x * x * x));
}

double swish_f64(double x, double alpha) noexcept {
  return x * sigmoid_f64(alpha * x);
}

double pow_f64(double base, double exponent) noexcept {
  return exp_f64(exponent * log_f64(base));
}

double power_f64(double base, double exponent) noexcept {
  if (exponent == 0.0 || base == 1.0) return 1.0;
  if (base != base || exponent != exponent) return kNaN;
  const double a = std::fabs(base);
  if (std::fabs(exponent) == kInf) {
    if (a == 1.0) return 1.0;
    return (a > 1.0) == (exponent > 0.0) ? kInf : 0.0;
  }
  bool odd = false;
  const bool whole = is_integer(exponent, odd);
  if (a == 0.0 || a == kInf) return extreme_power(base, exponent, odd);
  if (base < 0.0 && !whole) return kNaN;
  if (whole && std::fabs(exponent) <= 64.0) {
    const double p = integer_power(base, static_cast<unsigned>(std::fabs(exponent)));
    if (exponent > 0.0) return p;
    if (p != 0.0 && std::fabs(p) < kInf) return 1.0 / p;  // else the power left the range first
  }
  const double magnitude = pow_f64(a, exponent);
  return odd && base < 0.0 ? -magnitude : magnitude;
}

}  // namespace cyb::math
