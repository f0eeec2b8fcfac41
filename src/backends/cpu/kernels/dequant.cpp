// Exact path: panels decoded to f32 exactly as the formats' own decoders do, and the f32 dot
// product: for each k mod 4 one serial chain of fused multiply-adds, joined as (0 + 2) + (1 + 3),
// whatever the tile.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/dequant.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/dot-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

#define CYB_EACH_GROUP(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

/// Where the decoded weights of one 32-block go: group g, k mod 4 = e, rows row.. at base + (e *
/// n_quads + g) * 16 + row.
struct Sink {
  float* base;
  std::size_t n_quads;
  std::size_t row;
  CYB_FN_MEMBER int vector() const { return static_cast<int>(row / kL); }
  CYB_FN_MEMBER void put(std::size_t g, std::size_t e, F v) const {
    vstore(v, base + (e * n_quads + g) * 16 + row);
  }
};

CYB_FN I code_at(B codes, std::size_t e) {
  return iand(ishr(words(codes), static_cast<int>(8 * e)), iset(255));
}

/// scale * (code - offset).
CYB_FN void put_centred(const Sink& sink, std::size_t g, B codes, F scale, std::int32_t offset) {
  for (std::size_t e = 0; e < 4; ++e)
    sink.put(g, e, vmul(scale, icvt(isub(code_at(codes, e), iset(offset)))));
}
/// scale * code + minimum.
CYB_FN void put_affine(const Sink& sink, std::size_t g, B codes, F scale, F minimum) {
  for (std::size_t e = 0; e < 4; ++e)
    sink.put(g, e, vadd(vmul(scale, icvt(code_at(codes, e))), minimum));
}

CYB_FN F half_at(const std::uint8_t* p, std::size_t row) {
  return load_half(reinterpret_cast<const std::uint16_t*>(p) + row);
}

struct Q4 {
  static constexpr std::size_t kBytes = 288, kValues = 32;
  CYB_FN void decode(const std::uint8_t* p, std::size_t, const Sink& s) {
    const F d = half_at(p, s.row);
#define CYB_DO(G) put_centred(s, G, NibbleCode::at<G>(p + 32, s.vector()), d, 8);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q4_1 {
  static constexpr std::size_t kBytes = 320, kValues = 32;
  CYB_FN void decode(const std::uint8_t* p, std::size_t, const Sink& s) {
    const F d = half_at(p, s.row), m = half_at(p + 32, s.row);
#define CYB_DO(G) put_affine(s, G, NibbleCode::at<G>(p + 64, s.vector()), d, m);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q5_0 {
  static constexpr std::size_t kBytes = 352, kValues = 32;
  CYB_FN void decode(const std::uint8_t* p, std::size_t, const Sink& s) {
    const F d = half_at(p, s.row);
#define CYB_DO(G) put_centred(s, G, FiveBitCode::at<G>(p + 32, s.vector()), d, 16);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q5_1 {
  static constexpr std::size_t kBytes = 384, kValues = 32;
  CYB_FN void decode(const std::uint8_t* p, std::size_t, const Sink& s) {
    const F d = half_at(p, s.row), m = half_at(p + 32, s.row);
#define CYB_DO(G) put_affine(s, G, FiveBitCode::at<G>(p + 64, s.vector()), d, m);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q8 {
  static constexpr std::size_t kBytes = 544, kValues = 32;
  CYB_FN void decode(const std::uint8_t* p, std::size_t, const Sink& s) {
    const F d = half_at(p, s.row);
    for (std::size_t g = 0; g < 8; ++g) {
      const I w = words(bload(p + 32 + 64 * g + 4 * s.row));
      s.put(g, 0, vmul(d, icvt(ishr(ishl<24>(w), 24))));
      s.put(g, 1, vmul(d, icvt(ishr(ishl<16>(w), 24))));
      s.put(g, 2, vmul(d, icvt(ishr(ishl<8>(w), 24))));
      s.put(g, 3, vmul(d, icvt(ishr(w, 24))));
    }
  }
};
struct Q4k {
  static constexpr std::size_t kBytes = 2368, kValues = 256;
  CYB_FN void decode(const std::uint8_t* p, std::size_t j, const Sink& s) {
    const std::uint8_t* scales = p + 64 + 32 * j;
    const std::uint8_t* q = p + 320 + 256 * j;
    const F d = vmul(half_at(p, s.row), icvt(load_u8(scales + s.row)));
    const F m = vmul(half_at(p + 32, s.row), icvt(load_u8(scales + 16 + s.row)));
    const F minus = vsub(vzero(), m);
#define CYB_DO(G) put_affine(s, G, NibbleCode::at<G>(q, s.vector()), d, minus);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q5k {
  static constexpr std::size_t kBytes = 2880, kValues = 256;
  CYB_FN void decode(const std::uint8_t* p, std::size_t j, const Sink& s) {
    const std::uint8_t* scales = p + 64 + 32 * j;
    const std::uint8_t* q = p + 320 + 320 * j;
    const F d = vmul(half_at(p, s.row), icvt(load_u8(scales + s.row)));
    const F m = vmul(half_at(p + 32, s.row), icvt(load_u8(scales + 16 + s.row)));
    const F minus = vsub(vzero(), m);
#define CYB_DO(G) put_affine(s, G, FiveBitCode::at<G>(q, s.vector()), d, minus);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q6k {
  static constexpr std::size_t kBytes = 3360, kValues = 256;
  CYB_FN void decode(const std::uint8_t* p, std::size_t j, const Sink& s) {
    const std::uint8_t* q = p + 288 + 384 * j;
    const F d = half_at(p, s.row);
    const F d0 = vmul(d, icvt(load_s8(p + 32 + 32 * j + s.row))),
            d1 = vmul(d, icvt(load_s8(p + 48 + 32 * j + s.row)));
#define CYB_DO(G) put_centred(s, G, SixBitCode::at<G>(q, s.vector()), G < 4 ? d0 : d1, 32);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q3k {
  static constexpr std::size_t kBytes = 1824, kValues = 256;
  CYB_FN void decode(const std::uint8_t* p, std::size_t j, const Sink& s) {
    const std::uint8_t* q = p + 288 + 192 * j;
    const F d = half_at(p, s.row);
    const F d0 = vmul(d, icvt(load_s8(p + 32 + 32 * j + s.row))),
            d1 = vmul(d, icvt(load_s8(p + 48 + 32 * j + s.row)));
#define CYB_DO(G) put_centred(s, G, ThreeBitCode::at<G>(q, s.vector()), G < 4 ? d0 : d1, 4);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};
struct Q2k {
  static constexpr std::size_t kBytes = 1344, kValues = 256;
  CYB_FN void decode(const std::uint8_t* p, std::size_t j, const Sink& s) {
    const std::uint8_t* q = p + 320 + 128 * j;
    F d[2], minus[2];
    for (std::size_t half = 0; half < 2; ++half) {
      const I packed = load_u8(p + 64 + 32 * j + 16 * half + s.row);
      d[half] = vmul(half_at(p, s.row), icvt(iand(packed, iset(15))));
      minus[half] = vsub(vzero(), vmul(half_at(p + 32, s.row), icvt(ishr(packed, 4))));
    }
#define CYB_DO(G) put_affine(s, G, TwoBitCode::at<G>(q, s.vector()), d[G / 4], minus[G / 4]);
    CYB_EACH_GROUP(CYB_DO)
#undef CYB_DO
  }
};

template <class Format>
HWY_NOINLINE void dequant(const std::uint8_t* panel, std::size_t k0, std::size_t n_k,
                          float* dst) noexcept {
  for (std::size_t k = 0; k < n_k; k += 32) {
    const std::size_t at = k0 + k;
    const std::uint8_t* p = panel + at / Format::kValues * Format::kBytes;
    for (std::size_t row = 0; row < 16; row += kL) {
      Format::decode(p, at % Format::kValues / 32, Sink{dst + k / 4 * 16, n_k / 4, row});
    }
  }
}

/// Float panels: [K][16].
template <class Load>
CYB_FN void spread_floats(std::size_t n_k, float* dst, const Load& load) {
  const std::size_t n_quads = n_k / 4;
  for (std::size_t k = 0; k < n_k; ++k) {
    float* to = dst + (k % 4 * n_quads + k / 4) * 16;
    for (std::size_t row = 0; row < 16; row += kL) vstore(load.at(k * 16 + row), to + row);
  }
}
struct LoadF32 {
  const float* p;
  CYB_FN_MEMBER F at(std::size_t i) const { return vload(p + i); }
};
struct LoadF16 {
  const std::uint16_t* p;
  CYB_FN_MEMBER F at(std::size_t i) const { return load_half(p + i); }
};
struct LoadBf16 {
  const std::uint16_t* p;
  CYB_FN_MEMBER F at(std::size_t i) const { return load_bf16(p + i); }
};
HWY_NOINLINE void dequant_f32(const std::uint8_t* panel, std::size_t k0, std::size_t n_k,
                              float* dst) noexcept {
  spread_floats(n_k, dst, LoadF32{reinterpret_cast<const float*>(panel) + k0 * 16});
}
HWY_NOINLINE void dequant_f16(const std::uint8_t* panel, std::size_t k0, std::size_t n_k,
                              float* dst) noexcept {
  spread_floats(n_k, dst, LoadF16{reinterpret_cast<const std::uint16_t*>(panel) + k0 * 16});
}
HWY_NOINLINE void dequant_bf16(const std::uint8_t* panel, std::size_t k0, std::size_t n_k,
                               float* dst) noexcept {
  spread_floats(n_k, dst, LoadBf16{reinterpret_cast<const std::uint16_t*>(panel) + k0 * 16});
}

/// One token: the four chains side by side hide the latency.
CYB_FN void f32_row(const DotF32Job& job, const float* x, float* acc) {
  F a[4][kR];
  CYB_UNROLL for (std::size_t e = 0; e < 4; ++e) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) a[e][h] = vload(acc + e * 16 + h * kL);
  }
  for (std::size_t j = 0; j < job.n_quads; ++j) {
    CYB_UNROLL for (std::size_t e = 0; e < 4; ++e) {
      const F v = vset(x[4 * j + e]);
      const float* w = job.weights + (e * job.n_quads + j) * 16;
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) a[e][h] = vfma(vload(w + h * kL), v, a[e][h]);
    }
  }
  CYB_UNROLL for (std::size_t e = 0; e < 4; ++e) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) vstore(a[e][h], acc + e * 16 + h * kL);
  }
}

template <int T>
CYB_FN void f32_tile(const DotF32Job& job, const float* x, float* acc) {
  for (std::size_t e = 0; e < 4; ++e) {
    F a[T][kR];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) a[t][h] =
          vload(acc + 64 * t + 16 * e + h * kL);
    }
    const float* w = job.weights + e * job.n_quads * 16;
    const float* xe = x + e;
    for (std::size_t j = 0; j < job.n_quads; ++j) {
      F weights[kR];
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) weights[h] = vload(w + j * 16 + h * kL);
      CYB_UNROLL for (int t = 0; t < T; ++t) {
        const F v = vset(xe[static_cast<std::size_t>(t) * job.stride + 4 * j]);
        CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) a[t][h] = vfma(weights[h], v, a[t][h]);
      }
    }
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h)
          vstore(a[t][h], acc + 64 * t + 16 * e + h * kL);
    }
  }
}

HWY_NOINLINE void dot_f32(const DotF32Job& job) noexcept {
  const float* x = job.x;
  float* acc = job.acc;
  std::size_t left = job.n_tokens;
  for (; left >= 6; left -= 6, x += 6 * job.stride, acc += 6 * 64) f32_tile<6>(job, x, acc);
  if (left == 5) f32_tile<5>(job, x, acc);
  if (left == 4) f32_tile<4>(job, x, acc);
  if (left == 3) f32_tile<3>(job, x, acc);
  for (; left <= 2 && left > 0; --left, x += job.stride, acc += 64) f32_row(job, x, acc);
}

HWY_NOINLINE void finish_f32(const float* acc, std::size_t n_tokens, float* out) noexcept {
  for (std::size_t t = 0; t < n_tokens; ++t, acc += 64, out += 16) {
    for (std::size_t row = 0; row < 16; row += kL) {
      const F even = vadd(vload(acc + row), vload(acc + 32 + row));
      const F odd = vadd(vload(acc + 16 + row), vload(acc + 48 + row));
      vstore(vadd(even, odd), out + row);
    }
  }
}

CYB_FN void set(KernelTable& table, PanelFormat format, DequantFn fn) {
  table.dequant[static_cast<std::size_t>(format)] = fn;
}

}  // namespace

void fill_dequant(KernelTable& table) {
  set(table, PanelFormat::kQ4, dequant<Q4>);
  set(table, PanelFormat::kQ4_1, dequant<Q4_1>);
  set(table, PanelFormat::kQ5_0, dequant<Q5_0>);
  set(table, PanelFormat::kQ5_1, dequant<Q5_1>);
  set(table, PanelFormat::kQ8, dequant<Q8>);
  set(table, PanelFormat::kQ2k, dequant<Q2k>);
  set(table, PanelFormat::kQ3k, dequant<Q3k>);
  set(table, PanelFormat::kQ4k, dequant<Q4k>);
  set(table, PanelFormat::kQ5k, dequant<Q5k>);
  set(table, PanelFormat::kQ6k, dequant<Q6k>);
  set(table, PanelFormat::kF32, dequant_f32);
  set(table, PanelFormat::kF16, dequant_f16);
  set(table, PanelFormat::kBf16, dequant_bf16);
  table.dot_f32 = dot_f32;
  table.finish_f32 = finish_f32;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
