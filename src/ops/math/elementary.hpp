// Elementary functions of the reference: f64 series evaluated in one fixed order, rounded once to
// f32. Only IEEE add, subtract, multiply and divide are used, so every ISA and OS gives the same
// bits (IEEE square root too). Accuracy: at most 0.51 ulp in f32, a few ulp in f64.
#pragma once

namespace cyb::math {

double exp_f64(double x) noexcept;
double exp2_f64(double x) noexcept;
/// e^x - 1, exact near 0.
double expm1_f64(double x) noexcept;
/// log of a negative number is NaN, of zero -Inf.
double log_f64(double x) noexcept;
double log2_f64(double x) noexcept;
/// ln(1 + x), exact near 0.
double log1p_f64(double x) noexcept;
double tanh_f64(double x) noexcept;
double sinh_f64(double x) noexcept;
double cosh_f64(double x) noexcept;
double asinh_f64(double x) noexcept;
/// NaN below 1.
double acosh_f64(double x) noexcept;
/// NaN outside [-1, 1], infinite at its ends.
double atanh_f64(double x) noexcept;
double tan_f64(double x) noexcept;
double atan_f64(double x) noexcept;
/// NaN outside [-1, 1].
double asin_f64(double x) noexcept;
double acos_f64(double x) noexcept;
double erf_f64(double x) noexcept;
/// 1 - erf x without cancellation.
double erfc_f64(double x) noexcept;
/// ln(1 + e^x); never overflows.
double softplus_f64(double x) noexcept;
/// x tanh(ln(1 + e^x)).
double mish_f64(double x) noexcept;
/// x/2 (1 + erf(x / sqrt 2)).
double gelu_f64(double x) noexcept;
/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
double gelu_tanh_f64(double x) noexcept;
/// x / (1 + e^(-alpha x)).
double swish_f64(double x, double alpha = 1.0) noexcept;
/// 1 / (1 + e^-x); never overflows.
double sigmoid_f64(double x) noexcept;
/// base^exponent for base > 0.
double pow_f64(double base, double exponent) noexcept;
/// base^exponent for every pair, with the special values of IEEE 754.
double power_f64(double base, double exponent) noexcept;

struct SinCos {
  double sin, cos;
};
/// Exact argument reduction for every finite x; NaN for infinities.
SinCos sincos_f64(double x) noexcept;

inline float exp_f32(float x) noexcept {
  return static_cast<float>(exp_f64(x));
}
inline float log_f32(float x) noexcept {
  return static_cast<float>(log_f64(x));
}
inline float tanh_f32(float x) noexcept {
  return static_cast<float>(tanh_f64(x));
}
inline float erf_f32(float x) noexcept {
  return static_cast<float>(erf_f64(x));
}
inline float sigmoid_f32(float x) noexcept {
  return static_cast<float>(sigmoid_f64(x));
}
inline float sin_f32(float x) noexcept {
  return static_cast<float>(sincos_f64(x).sin);
}
inline float cos_f32(float x) noexcept {
  return static_cast<float>(sincos_f64(x).cos);
}

}  // namespace cyb::math
