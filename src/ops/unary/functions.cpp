// Elementwise functions of real numbers without attributes: f16, f32, f64, computed in f64 and
// rounded once.
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using Function = double (*)(double);

template <Function F>
Result<void> reference_function(const RefCall& call) {
  return ref::map_real(call, F);
}

template <Function F>
OpImpl function_op() {
  return {.infer = rules::same_real, .reference = reference_function<F>};
}

double square_root(double x) {
  return std::sqrt(x);
}
double inverse_root(double x) {
  return 1.0 / std::sqrt(x);
}
double reciprocal(double x) {
  return 1.0 / x;
}
double sine(double x) {
  return math::sincos_f64(x).sin;
}
double cosine(double x) {
  return math::sincos_f64(x).cos;
}
/// Nearest integer, halves to even; the sign of zero stays.
double round_even(double x) {
  const double a = std::fabs(x);
  if (!(a < 0x1p52)) return x;
  return std::copysign((a + 0x1p52) - 0x1p52, x);
}
double round_down(double x) {
  return std::floor(x);
}
double round_up(double x) {
  return std::ceil(x);
}
double hard_swish(double x) {
  const double gate = std::fmin(std::fmax(x / 6.0 + 0.5, 0.0), 1.0);
  return x != x ? x : x * gate;
}
double softsign(double x) {
  return x / (1.0 + std::fabs(x));
}

}  // namespace

OpImpl impl_Exp() {
  return function_op<math::exp_f64>();
}
OpImpl impl_Log() {
  return function_op<math::log_f64>();
}
OpImpl impl_Sqrt() {
  return function_op<square_root>();
}
OpImpl impl_Rsqrt() {
  return function_op<inverse_root>();
}
OpImpl impl_Erf() {
  return function_op<math::erf_f64>();
}
OpImpl impl_Sin() {
  return function_op<sine>();
}
OpImpl impl_Cos() {
  return function_op<cosine>();
}
OpImpl impl_Tan() {
  return function_op<math::tan_f64>();
}
OpImpl impl_Asin() {
  return function_op<math::asin_f64>();
}
OpImpl impl_Acos() {
  return function_op<math::acos_f64>();
}
OpImpl impl_Atan() {
  return function_op<math::atan_f64>();
}
OpImpl impl_Sinh() {
  return function_op<math::sinh_f64>();
}
OpImpl impl_Cosh() {
  return function_op<math::cosh_f64>();
}
OpImpl impl_Asinh() {
  return function_op<math::asinh_f64>();
}
OpImpl impl_Acosh() {
  return function_op<math::acosh_f64>();
}
OpImpl impl_Atanh() {
  return function_op<math::atanh_f64>();
}
OpImpl impl_Softplus() {
  return function_op<math::softplus_f64>();
}
OpImpl impl_Round() {
  return function_op<round_even>();
}
OpImpl impl_Floor() {
  return function_op<round_down>();
}
OpImpl impl_Ceil() {
  return function_op<round_up>();
}
OpImpl impl_Reciprocal() {
  return function_op<reciprocal>();
}
OpImpl impl_HardSwish() {
  return function_op<hard_swish>();
}
OpImpl impl_Mish() {
  return function_op<math::mish_f64>();
}
OpImpl impl_Softsign() {
  return function_op<softsign>();
}

}  // namespace cyb
