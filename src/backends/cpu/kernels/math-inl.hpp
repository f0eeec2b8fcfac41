// exp, tanh, erf and the activations on vectors of f32: one fixed chain of fused operations, so
// every ISA gives the same bits. Errors stay below 2 ulp (exp, tanh) and 1 ulp of 1 (erf). NaN
// stays NaN.
#if defined(CYB_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CYB_CPU_MATH_INL
#undef CYB_CPU_MATH_INL
#else
#define CYB_CPU_MATH_INL
#endif

#include "backends/cpu/kernels/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr float kRoundMagic =
    12582912.0f;  // 1.5 * 2^23: adding it rounds to nearest even for |x| < 2^22
constexpr std::int32_t kRoundMagicBits = 0x4B400000;
constexpr std::int32_t kSignBit = static_cast<std::int32_t>(0x80000000u);

CYB_FN F vabs(F x) {
  return ibits(iand(vbits(x), iset(0x7FFFFFFF)));
}
CYB_FN F copy_sign(F magnitude, F sign) {
  return ibits(ior(vbits(magnitude), iand(vbits(sign), iset(kSignBit))));
}

/// e^x: 2^n e^r, |r| <= ln 2 / 2, degree 6 (Cephes expf). 0 below -87.33, infinite above 88.37.
CYB_FN F vexp(F x) {
  const F shifted = vfma(x, vset(1.44269504088896341f), vset(kRoundMagic));
  const F n = vsub(shifted, vset(kRoundMagic));
  F r = vfnma(n, vset(0.693359375f), x);
  r = vfnma(n, vset(-2.12194440e-4f), r);
  F p = vset(1.9875691500e-4f);
  p = vfma(p, r, vset(1.3981999507e-3f));
  p = vfma(p, r, vset(8.3334519073e-3f));
  p = vfma(p, r, vset(4.1665795894e-2f));
  p = vfma(p, r, vset(1.6666665459e-1f));
  p = vfma(p, r, vset(5.0000001201e-1f));
  p = vadd(vfma(p, vmul(r, r), r), vset(1.0f));
  const I exponent = ishl<23>(isub(vbits(shifted), iset(kRoundMagicBits - 127)));
  F y = vmul(p, ibits(exponent));
  y = vsel_lt(x, vset(-87.33f), vzero(), y);
  return vsel_lt(vset(88.37f), x, vset(__builtin_inff()), y);
}

CYB_FN F vtanh(F x) {
  const F a = vabs(x);
  const F z = vmul(x, x);
  F p = vset(-5.70498872745e-3f);  // Cephes tanhf
  p = vfma(p, z, vset(2.06390887954e-2f));
  p = vfma(p, z, vset(-5.37397155531e-2f));
  p = vfma(p, z, vset(1.33314422036e-1f));
  p = vfma(p, z, vset(-3.33332819422e-1f));
  const F small = vfma(vmul(p, z), x, x);
  const F big = vsub(vset(1.0f), vdiv(vset(2.0f), vadd(vexp(vadd(a, a)), vset(1.0f))));
  return vsel_lt(a, vset(0.625f), small, copy_sign(big, x));
}

/// Two minimax polynomials joined at 0.9277 (after N. Juffa's erff).
CYB_FN F verf(F x) {
  const F a = vabs(x);
  const F s = vmul(x, x);
  F r = vfma(vset(-1.72853470e-5f), a, vset(3.83197126e-4f));
  const F u = vfma(vset(-3.88396438e-3f), a, vset(2.42546219e-2f));
  r = vfma(r, s, u);
  r = vfma(r, a, vset(-1.06777877e-1f));
  r = vfma(r, a, vset(-6.34846687e-1f));
  r = vfma(r, a, vset(-1.28717512e-1f));
  r = vfnma(vset(1.0f), a, vmul(r, a));
  const F big = copy_sign(vsub(vset(1.0f), vexp(r)), x);
  F q = vset(-5.96761703e-4f);
  q = vfma(q, s, vset(4.99119423e-3f));
  q = vfma(q, s, vset(-2.67681349e-2f));
  q = vfma(q, s, vset(1.12819925e-1f));
  q = vfma(q, s, vset(-3.76125336e-1f));
  q = vfma(q, s, vset(1.28379166e-1f));
  const F small = vfma(q, x, x);
  return vsel_lt(vset(0.927734375f), a, big, small);
}

/// sin x for |x| < 2^17: x - n pi in three steps (W. Cody and W. Waite), the first of which is
/// exact, then a polynomial of degree 9 (SLEEF's sinf_u35). Errors stay below 3e-7.
CYB_FN F vsin(F x) {
  const F shifted = vfma(x, vset(0.318309886183790671f), vset(kRoundMagic));
  const F n = vsub(shifted, vset(kRoundMagic));
  F r = vfnma(n, vset(3.140625f), x);
  r = vfnma(n, vset(9.67502593994140625e-4f), r);
  r = vfnma(n, vset(1.509957990978376e-7f), r);
  const I odd = ishl<31>(vbits(shifted));  // the last bit of n
  const F s = vmul(r, r);
  F p = vset(2.6083159809786593e-6f);
  p = vfma(p, s, vset(-1.981069071916863e-4f));
  p = vfma(p, s, vset(8.333078585565090e-3f));
  p = vfma(p, s, vset(-1.666665971279144e-1f));
  const F y = vfma(vmul(p, s), r, r);
  const I sign =
      isub(iand(ior(vbits(y), odd), iset(kSignBit)), iand(iand(vbits(y), odd), iset(kSignBit)));
  return ibits(ior(iand(vbits(y), iset(0x7FFFFFFF)), sign));
}

CYB_FN F one_plus_exp_minus(F x) {
  return vadd(vexp(vsub(vzero(), x)), vset(1.0f));
}

template <RowOp kOp>
CYB_FN F activate(F x) {
  if constexpr (kOp == RowOp::kSilu) return vdiv(x, one_plus_exp_minus(x));
  if constexpr (kOp == RowOp::kSigmoid) return vdiv(vset(1.0f), one_plus_exp_minus(x));
  if constexpr (kOp == RowOp::kGeluQuick) return vdiv(x, one_plus_exp_minus(vmul(x, vset(1.702f))));
  if constexpr (kOp == RowOp::kTanh) return vtanh(x);
  if constexpr (kOp == RowOp::kRelu) return vsel_lt(x, vzero(), vzero(), x);
  if constexpr (kOp == RowOp::kGeluErf) {
    const F half = vmul(x, vset(0.5f));
    return vmul(half, vadd(vset(1.0f), verf(vmul(x, vset(0.70710678118654752f)))));
  }
  if constexpr (kOp == RowOp::kGeluTanh) {
    const F cube = vmul(vmul(vmul(x, x), x), vset(0.044715f));
    const F t = vtanh(vmul(vadd(x, cube), vset(0.79788456080286536f)));
    return vmul(vmul(x, vset(0.5f)), vadd(vset(1.0f), t));
  }
}

}  // namespace
}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
