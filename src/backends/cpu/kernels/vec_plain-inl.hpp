// Plain C++ part of the vector layer: arrays of 16 lanes and fmaf. Included by vec-inl.hpp inside
// its namespace.
constexpr std::size_t kL = 16;
struct F {
  float v[16];
};
struct I {
  std::int32_t v[16];
};
struct B {
  std::uint8_t v[64];
};
#define CYB_ORDER(acc) (void)(acc)
#define CYB_LANES for (std::size_t i = 0; i < 16; ++i)

CYB_FN F vload(const float* p) {
  F r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
CYB_FN void vstore(const F& a, float* p) {
  std::memcpy(p, a.v, sizeof a.v);
}
CYB_FN F vset(float x) {
  F r;
  CYB_LANES r.v[i] = x;
  return r;
}
CYB_FN F vzero() {
  return vset(0.0f);
}
#define CYB_BINARY(name, T, expr)         \
  CYB_FN T name(const T& a, const T& b) { \
    T r;                                  \
    CYB_LANES r.v[i] = expr;              \
    return r;                             \
  }
CYB_BINARY(vadd, F, a.v[i] + b.v[i])
CYB_BINARY(vsub, F, a.v[i] - b.v[i])
CYB_BINARY(vmul, F, a.v[i] * b.v[i])
CYB_BINARY(vdiv, F, a.v[i] / b.v[i])
// Integer lanes wrap, as vector instructions do.
CYB_FN std::int32_t wrapped(std::uint32_t x) {
  return static_cast<std::int32_t>(x);
}
CYB_BINARY(iadd, I,
           wrapped(static_cast<std::uint32_t>(a.v[i]) + static_cast<std::uint32_t>(b.v[i])))
CYB_BINARY(isub, I,
           wrapped(static_cast<std::uint32_t>(a.v[i]) - static_cast<std::uint32_t>(b.v[i])))
CYB_BINARY(iand, I, a.v[i] & b.v[i])
CYB_BINARY(ior, I, a.v[i] | b.v[i])
#undef CYB_BINARY
CYB_FN std::int32_t low_half(std::int32_t x) {
  return static_cast<std::int16_t>(x & 0xFFFF);
}
/// Words of two int16: low * low + high * high.
CYB_FN I imadd(const I& a, const I& b) {
  I r;
  CYB_LANES {
    const auto low = static_cast<std::uint32_t>(low_half(a.v[i]) * low_half(b.v[i]));
    const auto high = static_cast<std::uint32_t>((a.v[i] >> 16) * (b.v[i] >> 16));
    r.v[i] = wrapped(low + high);
  }
  return r;
}
CYB_FN F vfma(const F& a, const F& b, const F& c) {
  F r;
  CYB_LANES r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
CYB_FN F vfnma(const F& a, const F& b, const F& c) {
  F r;
  CYB_LANES r.v[i] = __builtin_fmaf(-a.v[i], b.v[i], c.v[i]);
  return r;
}
CYB_FN I vbits(const F& a) {
  I r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
CYB_FN F ibits(const I& a) {
  F r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
CYB_FN F icvt(const I& a) {
  F r;
  CYB_LANES r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
CYB_FN I iset(std::int32_t x) {
  I r;
  CYB_LANES r.v[i] = x;
  return r;
}
CYB_FN I iload(const std::int32_t* p) {
  I r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
CYB_FN void istore(const I& a, std::int32_t* p) {
  std::memcpy(p, a.v, sizeof a.v);
}
template <int N>
CYB_FN I ishl(const I& a) {
  I r;
  CYB_LANES r.v[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) << N);
  return r;
}
CYB_FN I ishr(const I& a, int n) {
  I r;
  CYB_LANES r.v[i] = a.v[i] >> n;
  return r;
}
CYB_FN F vsel_lt(const F& a, const F& b, const F& x, const F& y) {
  F r;
  CYB_LANES r.v[i] = a.v[i] < b.v[i] ? x.v[i] : y.v[i];
  return r;
}
CYB_FN F isel_lt(const I& a, const I& b, const F& x, const F& y) {
  F r;
  CYB_LANES r.v[i] = a.v[i] < b.v[i] ? x.v[i] : y.v[i];
  return r;
}
CYB_FN float bits_f32(std::uint32_t b) {
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}
CYB_FN float half_f32(std::uint32_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16;
  const std::uint32_t magnitude = h & 0x7FFFu;
  if (magnitude >= 0x7C00u) return bits_f32(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x0400u) return bits_f32(sign | ((magnitude << 13) + 0x38000000u));
  const float f = static_cast<float>(magnitude) * 0x1p-24f;  // subnormal: exact
  return sign != 0 ? -f : f;
}
CYB_FN std::uint16_t f32_half(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t m = bits & 0x7FFFFFFFu;
  if (m > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | ((m >> 13) & 0x3FFu));
  if (m >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (m >= 0x38800000u)
    return static_cast<std::uint16_t>(sign | ((m + 0xFFFu + ((m >> 13) & 1u) - 0x38000000u) >> 13));
  const float shifted = bits_f32(m) + 0.5f;  // rounds to a multiple of 2^-24, nearest even
  std::uint32_t b;
  std::memcpy(&b, &shifted, 4);
  return static_cast<std::uint16_t>(sign | (b - 0x3F000000u));
}
CYB_FN F load_half(const std::uint16_t* p) {
  F r;
  CYB_LANES r.v[i] = half_f32(p[i]);
  return r;
}
CYB_FN void store_half(const F& a, std::uint16_t* p) {
  CYB_LANES p[i] = f32_half(a.v[i]);
}
CYB_FN F load_bf16(const std::uint16_t* p) {
  F r;
  CYB_LANES r.v[i] = bits_f32(static_cast<std::uint32_t>(p[i]) << 16);
  return r;
}
CYB_FN I load_u8(const std::uint8_t* p) {
  I r;
  CYB_LANES r.v[i] = p[i];
  return r;
}
CYB_FN I load_s8(const std::uint8_t* p) {
  I r;
  CYB_LANES r.v[i] = static_cast<std::int8_t>(p[i]);
  return r;
}

CYB_FN B bload(const std::uint8_t* p) {
  B r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
CYB_FN void bstore(const B& v, std::uint8_t* p) {
  std::memcpy(p, v.v, sizeof v.v);
}
CYB_FN B bspread(const std::uint8_t* p) {
  B r;
  CYB_LANES std::memcpy(r.v + 4 * i, p, 4);
  return r;
}
CYB_FN B bset(int x) {
  B r;
  std::memset(r.v, x, sizeof r.v);
  return r;
}
#define CYB_BYTES for (std::size_t i = 0; i < 64; ++i)
CYB_FN B band(const B& a, const B& b) {
  B r;
  CYB_BYTES r.v[i] = a.v[i] & b.v[i];
  return r;
}
CYB_FN B bor(const B& a, const B& b) {
  B r;
  CYB_BYTES r.v[i] = a.v[i] | b.v[i];
  return r;
}
// Shifts per byte: users mask the bits that 16-bit shifts of other targets let across.
template <int N>
CYB_FN B bshr(const B& a) {
  B r;
  CYB_BYTES r.v[i] = static_cast<std::uint8_t>(a.v[i] >> N);
  return r;
}
template <int N>
CYB_FN B bshl(const B& a) {
  B r;
  CYB_BYTES r.v[i] = static_cast<std::uint8_t>(a.v[i] << N);
  return r;
}
CYB_FN I words(const B& a) {
  I r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
CYB_FN std::int32_t pair_part(const std::uint8_t* pair, std::size_t k) {
  std::int16_t part;
  std::memcpy(&part, pair + 2 * k, 2);
  return part;
}

using Acc = I;
CYB_FN Acc acc_zero() {
  return iset(0);
}
CYB_FN Acc acc_start(const std::uint8_t* pair) {
  return iset(pair_part(pair, 0) + pair_part(pair, 1));
}
CYB_FN Acc acc_start_eighth(const std::uint8_t* pair) {
  return iset((pair_part(pair, 0) + pair_part(pair, 1)) / 8);
}
CYB_FN Acc acc_step(const Acc& acc, const B& w, const B& x) {
  Acc r = acc;
  CYB_LANES for (std::size_t e = 0; e < 4; ++e) r.v[i] +=
      w.v[4 * i + e] * static_cast<std::int8_t>(x.v[4 * i + e]);
  return r;
}
CYB_FN I acc_sum(const Acc& acc) {
  return acc;
}
using Scale = I;
CYB_FN Scale scale_of(const I& s) {
  return s;
}
CYB_FN I acc_scaled(const Acc& acc, const Scale& s) {
  I r;
  CYB_LANES r.v[i] = acc.v[i] * s.v[i];
  return r;
}
CYB_FN I pair_dot(const I& lo, const I& hi, const std::uint8_t* pair) {
  I r;
  CYB_LANES r.v[i] = lo.v[i] * pair_part(pair, 0) + hi.v[i] * pair_part(pair, 1);
  return r;
}
struct SignedWeight {
  B bytes;
};
CYB_FN SignedWeight sw_load(const std::uint8_t* p) {
  return {bload(p)};
}
CYB_FN I sw_start(const std::uint8_t*) {
  return iset(0);
}
CYB_FN I sw_step(const I& acc, const SignedWeight& w, const B& x) {
  I r = acc;
  CYB_LANES for (std::size_t e = 0; e < 4; ++e) {
    r.v[i] +=
        static_cast<std::int8_t>(w.bytes.v[4 * i + e]) * static_cast<std::int8_t>(x.v[4 * i + e]);
  }
  return r;
}
CYB_FN I sw_sum(const I& acc) {
  return acc;
}
#undef CYB_BYTES
#undef CYB_LANES
