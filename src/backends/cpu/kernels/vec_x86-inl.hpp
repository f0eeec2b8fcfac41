// AVX2 and AVX-512 part of the vector layer; included by vec-inl.hpp inside its namespace, once per
// target.
namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DH = hn::Rebind<hwy::float16_t, DF>;
using F = hn::Vec<DF>;
using I = hn::Vec<DI>;
constexpr std::size_t kL = CYB_WIDE ? 16 : 8;

#if CYB_WIDE
using B = __m512i;
#define CYB_ORDER(acc) asm volatile("" : "+v"(acc))
#define CYB_MM(op) _mm512_##op
#define CYB_SI(op) _mm512_##op##_si512
#else
using B = __m256i;
#define CYB_ORDER(acc) asm volatile("" : "+x"(acc))
#define CYB_MM(op) _mm256_##op
#define CYB_SI(op) _mm256_##op##_si256
#endif

CYB_FN F vload(const float* p) {
  return hn::LoadU(DF(), p);
}
CYB_FN void vstore(F v, float* p) {
  hn::StoreU(v, DF(), p);
}
CYB_FN F vset(float x) {
  return hn::Set(DF(), x);
}
CYB_FN F vzero() {
  return hn::Zero(DF());
}
CYB_FN F vadd(F a, F b) {
  return hn::Add(a, b);
}
CYB_FN F vsub(F a, F b) {
  return hn::Sub(a, b);
}
CYB_FN F vmul(F a, F b) {
  return hn::Mul(a, b);
}
CYB_FN F vdiv(F a, F b) {
  return hn::Div(a, b);
}
CYB_FN F vfma(F a, F b, F c) {
  return hn::MulAdd(a, b, c);
}
CYB_FN F vfnma(F a, F b, F c) {
  return hn::NegMulAdd(a, b, c);
}
CYB_FN I vbits(F a) {
  return hn::BitCast(DI(), a);
}
CYB_FN F ibits(I a) {
  return hn::BitCast(DF(), a);
}
CYB_FN F icvt(I a) {
  return hn::ConvertTo(DF(), a);
}
CYB_FN I iset(std::int32_t x) {
  return hn::Set(DI(), x);
}
CYB_FN I iload(const std::int32_t* p) {
  return hn::LoadU(DI(), p);
}
CYB_FN void istore(I v, std::int32_t* p) {
  hn::StoreU(v, DI(), p);
}
CYB_FN I iadd(I a, I b) {
  return hn::Add(a, b);
}
CYB_FN I isub(I a, I b) {
  return hn::Sub(a, b);
}
CYB_FN I iand(I a, I b) {
  return hn::And(a, b);
}
/// Words of two int16: low * low + high * high.
CYB_FN I imadd(I a, I b) {
  return I{CYB_MM(madd_epi16)(a.raw, b.raw)};
}
CYB_FN I ior(I a, I b) {
  return hn::Or(a, b);
}
template <int N>
CYB_FN I ishl(I a) {
  return hn::ShiftLeft<N>(a);
}
CYB_FN I ishr(I a, int n) {
  return hn::ShiftRightSame(a, n);
}
/// a < b ? x : y; false where a or b is NaN.
CYB_FN F vsel_lt(F a, F b, F x, F y) {
  return hn::IfThenElse(hn::Lt(a, b), x, y);
}
CYB_FN F isel_lt(I a, I b, F x, F y) {
  return hn::IfThenElse(hn::RebindMask(DF(), hn::Lt(a, b)), x, y);
}
CYB_FN F load_half(const std::uint16_t* p) {
  return hn::PromoteTo(DF(), hn::LoadU(DH(), reinterpret_cast<const hwy::float16_t*>(p)));
}
CYB_FN void store_half(F v, std::uint16_t* p) {
  hn::StoreU(hn::DemoteTo(DH(), v), DH(), reinterpret_cast<hwy::float16_t*>(p));
}
CYB_FN F load_bf16(const std::uint16_t* p) {
  return ibits(ishl<16>(hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::uint16_t, DF>(), p))));
}
CYB_FN I load_u8(const std::uint8_t* p) {
  return hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::uint8_t, DF>(), p));
}
CYB_FN I load_s8(const std::uint8_t* p) {
  return hn::PromoteTo(
      DI(), hn::LoadU(hn::Rebind<std::int8_t, DF>(), reinterpret_cast<const std::int8_t*>(p)));
}

// Bytes: 4 k of kL rows, or 4 k of one token repeated.
CYB_FN B bload(const std::uint8_t* p) {
  return CYB_SI(loadu)(reinterpret_cast<const B*>(p));
}
CYB_FN void bstore(B v, std::uint8_t* p) {
  CYB_SI(storeu)(reinterpret_cast<B*>(p), v);
}
CYB_FN B bspread(const std::uint8_t* p) {
  std::int32_t word;
  std::memcpy(&word, p, 4);
  return CYB_MM(set1_epi32)(word);
}
CYB_FN B bset(int x) {
  return CYB_MM(set1_epi8)(static_cast<char>(x));
}
CYB_FN B band(B a, B b) {
  return CYB_SI(and)(a, b);
}
CYB_FN B bor(B a, B b) {
  return CYB_SI(or)(a, b);
}
template <int N>
CYB_FN B bshr(B a) {
  return CYB_MM(srli_epi16)(a, N);
}
template <int N>
CYB_FN B bshl(B a) {
  return CYB_MM(slli_epi16)(a, N);
}

#if CYB_VNNI
CYB_FN B dot4(B acc, B unsigned_bytes, B signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(unsigned_bytes), "v"(signed_bytes));
  return acc;
}
#endif

// Acc: sums of unsigned weights times x over 32 k. Two 16-bit lanes per row, or one 32-bit lane
// where VNNI is there.
using Acc = B;
CYB_FN Acc acc_zero() {
  return CYB_SI(setzero)();
}
CYB_FN Acc acc_start(const std::uint8_t* pair) {
#if CYB_VNNI
  return CYB_MM(madd_epi16)(bspread(pair), CYB_MM(set1_epi16)(1));
#else
  return bspread(pair);
#endif
}
/// A start of an eighth of the pair: exact, as the pair is a multiple of 8.
CYB_FN Acc acc_start_eighth(const std::uint8_t* pair) {
  const B eighth = CYB_MM(srai_epi16)(bspread(pair), 3);
#if CYB_VNNI
  return CYB_MM(madd_epi16)(eighth, CYB_MM(set1_epi16)(1));
#else
  return eighth;
#endif
}
CYB_FN Acc acc_step(Acc acc, B w, B x) {
#if CYB_VNNI
  return dot4(acc, w, x);
#else
  return CYB_MM(add_epi16)(acc, CYB_MM(maddubs_epi16)(w, x));
#endif
}
CYB_FN I acc_sum(Acc acc) {
#if CYB_VNNI
  return I{acc};
#else
  return I{CYB_MM(madd_epi16)(acc, CYB_MM(set1_epi16)(1))};
#endif
}
// Scale: one small integer per row, in the form that acc_scaled wants.
using Scale = B;
CYB_FN Scale scale_of(I s) {
#if CYB_VNNI
  return s.raw;
#else
  return bor(iand(s, iset(0xFFFF)).raw, ishl<16>(s).raw);
#endif
}
CYB_FN I acc_scaled(Acc acc, Scale s) {
#if CYB_VNNI
  return I{CYB_MM(mullo_epi32)(acc, s)};
#else
  return I{CYB_MM(madd_epi16)(acc, s)};
#endif
}
/// Per row: lo * pair[0] + hi * pair[1], pair = two int16 of the token, lo and hi below 2^15.
CYB_FN I pair_dot(I lo, I hi, const std::uint8_t* pair) {
  return I{CYB_MM(madd_epi16)(ior(lo, ishl<16>(hi)).raw, bspread(pair))};
}

// Signed weights (q8): widened to 32 bits at once; x is never -128.
struct SignedWeight {
  B magnitude, signed_bytes;
};
CYB_FN SignedWeight sw_load(const std::uint8_t* p) {
  const B w = bload(p);
#if CYB_VNNI
  return {CYB_SI(xor)(w, bset(0x80)), w};  // w + 128
#else
  return {CYB_MM(abs_epi8)(w), w};
#endif
}
/// `start8`: the record's -8 * sum(q) pair.
CYB_FN B sw_start([[maybe_unused]] const std::uint8_t* start8) {
#if CYB_VNNI
  return CYB_MM(madd_epi16)(bspread(start8), CYB_MM(set1_epi16)(16));
#else
  return acc_zero();
#endif
}
CYB_FN B sw_step(B acc, const SignedWeight& w, B x) {
#if CYB_VNNI
  return dot4(acc, w.magnitude, x);
#elif CYB_WIDE
  const B sx =
      _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w.signed_bytes), _mm512_setzero_si512(), x);
  const B pairs = _mm512_maddubs_epi16(w.magnitude, sx);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#else
  const B pairs = _mm256_maddubs_epi16(w.magnitude, _mm256_sign_epi8(x, w.signed_bytes));
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}
CYB_FN I sw_sum(B acc) {
  return I{acc};
}
CYB_FN I words(B w) {
  return I{w};
}
#undef CYB_MM
#undef CYB_SI
