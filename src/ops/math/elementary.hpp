// Elementary functions of the reference: f64 series evaluated in one fixed order, rounded once to
// f32. Only IEEE add, subtract, multiply and divide are used, so every ISA and OS gives the same
// bits. Accuracy: at most 0.51 ulp in f32.
#pragma once

namespace cyb::math {

double exp_f64(double x) noexcept;
/// log of a negative number is NaN, of zero -Inf.
double log_f64(double x) noexcept;
double tanh_f64(double x) noexcept;
double erf_f64(double x) noexcept;
/// 1 / (1 + e^-x); never overflows.
double sigmoid_f64(double x) noexcept;
/// base^exponent for base > 0.
double pow_f64(double base, double exponent) noexcept;

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
