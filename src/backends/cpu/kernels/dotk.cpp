// Dot products of panels in 256-blocks (q2k, q3k, q4k, q5k, q6k) with int8 activations: per 32 k an
// exact integer times its small scale joins s (and the minimum joins m), per 256 k both join the
// row's sum. One fixed chain, whatever the tile.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/dotk.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/dot-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

/// s and m of one super-block.
template <int T, int R>
struct Partial {
  F s[T][R], m[T][R];
};

CYB_FN F half_at(const std::uint8_t* p, int h) {
  return load_half(reinterpret_cast<const std::uint16_t*>(p) + static_cast<std::size_t>(h) * kL);
}

/// s += f32(sum) * dx.
template <int T, int R>
CYB_FN void add_sums(const I (&sums)[T][R], const Record<T>& rec, F (&s)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    const F dx = vset(rec.f32(kDx, t));
    CYB_UNROLL for (int h = 0; h < R; ++h) s[t][h] = vfma(icvt(sums[t][h]), dx, s[t][h]);
  }
}

/// m += minimum * sx, one 8-bit minimum per row and 32 k.
template <int T, int R>
CYB_FN void add_minima(const std::uint8_t* minima, const Record<T>& rec, F (&m)[T][R]) {
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    const F minimum = icvt(load_u8(minima + static_cast<std::size_t>(h) * kL));
    CYB_UNROLL for (int t = 0; t < T; ++t) m[t][h] = vfma(minimum, vset(rec.f32(kSx, t)), m[t][h]);
  }
}

/// Q4_K: 16 f16 d, 16 f16 dmin, 8 x (16 u8 scale, 16 u8 minimum), 8 x 256 nibbles.
template <class Code>
struct Q4k {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 320, kSubBlocks = 8, kBytes = kHeader + 8 * Code::kBytes;
  static constexpr bool kMinimum = true;
  template <int T, int R>
  CYB_FN void sub_block(const std::uint8_t* p, int j, const Record<T>& rec, Partial<T, R>& part) {
    const std::uint8_t* q = p + kHeader + Code::kBytes * static_cast<std::size_t>(j);
    const std::uint8_t* scales = p + 64 + 32 * j;
    Acc a[T][R];
    start_zero<T, R>(a);
    all_steps<Code>(q, rec, a);
    I sums[T][R];
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      const Scale sc = scale_of(load_u8(scales + static_cast<std::size_t>(h) * kL));
      CYB_UNROLL for (int t = 0; t < T; ++t) sums[t][h] = acc_scaled(a[t][h], sc);
    }
    add_sums<T, R>(sums, rec, part.s);
    add_minima<T, R>(scales + 16, rec, part.m);
  }
};

/// Q5_K: as Q4_K with 8 x (256 low nibbles, 64 bytes of high bits).
template <class Code>
struct Q5k {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 320, kSubBlocks = 8, kBytes = kHeader + 8 * Code::kBytes;
  static constexpr bool kMinimum = true;
  template <int T, int R>
  CYB_FN void sub_block(const std::uint8_t* p, int j, const Record<T>& rec, Partial<T, R>& part) {
    const std::uint8_t* q = p + kHeader + Code::kBytes * static_cast<std::size_t>(j);
    const std::uint8_t* scales = p + 64 + 32 * j;
    Acc first[T][R], last[T][R];
    start_zero<T, R>(first);
    start_zero<T, R>(last);
    half_steps<Code>(q, rec, first, last);
    I sums[T][R];
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      const Scale sc = scale_of(load_u8(scales + static_cast<std::size_t>(h) * kL));
      CYB_UNROLL for (int t = 0; t < T; ++t) {
        sums[t][h] = iadd(acc_scaled(first[t][h], sc), acc_scaled(last[t][h], sc));
      }
    }
    add_sums<T, R>(sums, rec, part.s);
    add_minima<T, R>(scales + 16, rec, part.m);
  }
};

/// Scaled sums of both halves of a 32-block: scales of 16 k each, signed or unsigned bytes.
template <int T, int R>
CYB_FN void scale_halves(const Acc (&first)[T][R], const Acc (&last)[T][R], const I (&sc)[2][R],
                         I (&sums)[T][R]) {
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    const Scale sc0 = scale_of(sc[0][h]), sc1 = scale_of(sc[1][h]);
    CYB_UNROLL for (int t = 0; t < T; ++t) sums[t][h] =
        iadd(acc_scaled(first[t][h], sc0), acc_scaled(last[t][h], sc1));
  }
}

template <int R>
CYB_FN void load_signed_scales(const std::uint8_t* scales, I (&sc)[2][R]) {
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    sc[0][h] = load_s8(scales + static_cast<std::size_t>(h) * kL);
    sc[1][h] = load_s8(scales + 16 + static_cast<std::size_t>(h) * kL);
  }
}

/// Q6_K: 16 f16 d, 16 x 16 int8 scales, 8 x (256 low nibbles, 128 bytes of high bit pairs). I = sum
/// (w - 32) q.
template <class Code>
struct Q6k {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 288, kSubBlocks = 8, kBytes = kHeader + 8 * Code::kBytes;
  static constexpr bool kMinimum = false;
  template <int T, int R>
  CYB_FN void sub_block(const std::uint8_t* p, int j, const Record<T>& rec, Partial<T, R>& part) {
    const std::uint8_t* q = p + kHeader + Code::kBytes * static_cast<std::size_t>(j);
    Acc first[T][R], last[T][R];
    start<T, R>(rec, kStart32a, first);
    first_steps<Code>(q, rec, first);
    start<T, R>(rec, kStart32b, last);
    last_steps<Code>(q, rec, last);
    I sc[2][R], sums[T][R];
    load_signed_scales<R>(p + 32 + 32 * j, sc);
    scale_halves<T, R>(first, last, sc, sums);
    add_sums<T, R>(sums, rec, part.s);
  }
};

/// Q3_K: 16 f16 d, 16 x 16 int8 scales, 8 x (128 bytes of low bit pairs, 64 bytes of high bits). I
/// = sum (w - 4) q.
template <class Code>
struct Q3k {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 288, kSubBlocks = 8, kBytes = kHeader + 8 * Code::kBytes;
  static constexpr bool kMinimum = false;
  template <int T, int R>
  CYB_FN void sub_block(const std::uint8_t* p, int j, const Record<T>& rec, Partial<T, R>& part) {
    const std::uint8_t* q = p + kHeader + Code::kBytes * static_cast<std::size_t>(j);
    Acc first[T][R], last[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) {
        first[t][h] = acc_start_eighth(rec.word(kStart32a, t));
        last[t][h] = acc_start_eighth(rec.word(kStart32b, t));
      }
    }
    first_steps<Code>(q, rec, first);
    last_steps<Code>(q, rec, last);
    I sc[2][R], sums[T][R];
    load_signed_scales<R>(p + 32 + 32 * j, sc);
    scale_halves<T, R>(first, last, sc, sums);
    add_sums<T, R>(sums, rec, part.s);
  }
};

/// Q2_K: 16 f16 d, 16 f16 dmin, 16 x 16 bytes (low nibble scale, high nibble minimum, per 16 k), 8
/// x 128 bytes of bit pairs.
template <class Code>
struct Q2k {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 320, kSubBlocks = 8, kBytes = kHeader + 8 * Code::kBytes;
  static constexpr bool kMinimum = true;
  template <int T, int R>
  CYB_FN void sub_block(const std::uint8_t* p, int j, const Record<T>& rec, Partial<T, R>& part) {
    const std::uint8_t* q = p + kHeader + Code::kBytes * static_cast<std::size_t>(j);
    Acc first[T][R], last[T][R];
    start_zero<T, R>(first);
    first_steps<Code>(q, rec, first);
    start_zero<T, R>(last);
    last_steps<Code>(q, rec, last);
    const std::uint8_t* scales = p + 64 + 32 * j;
    I sc[2][R], sums[T][R];
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      const std::size_t at = static_cast<std::size_t>(h) * kL;
      sc[0][h] = iand(load_u8(scales + at), iset(15));
      sc[1][h] = iand(load_u8(scales + 16 + at), iset(15));
    }
    scale_halves<T, R>(first, last, sc, sums);
    add_sums<T, R>(sums, rec, part.s);
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      const std::size_t at = static_cast<std::size_t>(h) * kL;
      const I m0 = ishr(load_u8(scales + at), 4), m1 = ishr(load_u8(scales + 16 + at), 4);
      CYB_UNROLL for (int t = 0; t < T; ++t) {
        part.m[t][h] = vfma(icvt(pair_dot(m0, m1, rec.word(kHalfSums, t))), vset(rec.f32(kDx, t)),
                            part.m[t][h]);
      }
    }
  }
};

template <class Format, int T, int R>
CYB_FN void super_block(const std::uint8_t* p, const std::uint8_t* acts, std::size_t ahead,
                        F (&acc)[T][R]) {
  Partial<T, R> part;
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) part.s[t][h] = part.m[t][h] = vzero();
  }
  for (int j = 0; j < 8; ++j) {
    prefetch_block<Format::kBytes / 8>(p + ahead +
                                       Format::kBytes / 8 * static_cast<std::size_t>(j));
    Format::template sub_block<T, R>(p, j, Record<T>{acts}, part);
    acts += T * kRecordBytes;
  }
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    const F d = half_at(p, h);
    if constexpr (Format::kMinimum) {
      const F dmin = half_at(p + 32, h);
      CYB_UNROLL for (int t = 0; t < T; ++t) acc[t][h] = vfnma(dmin, part.m[t][h], acc[t][h]);
    }
    CYB_UNROLL for (int t = 0; t < T; ++t) acc[t][h] = vfma(d, part.s[t][h], acc[t][h]);
  }
}

template <class Format>
struct KernelK {
  using FormatType = Format;
  template <int T, int R>
  CYB_FN void tile(const DotJob& job, const std::uint8_t* acts, std::size_t ahead, float* out) {
    F acc[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) acc[t][h] = vzero();
    }
    const std::uint8_t* p = job.panel;
    for (std::size_t b = 0; b < job.n_blocks; b += 8) {
      super_block<Format, T, R>(p, acts, ahead, acc);
      p += Format::kBytes;
      acts += 8 * T * kRecordBytes;
    }
    store_tile<T, R>(acc, out);
  }
};

HWY_NOINLINE void dot_q2k(const DotJob& job) noexcept {
  dot_packed_or_plain<KernelK<Q2k<TwoBitCode>>, KernelK<Q2k<PlainCode>>>(job);
}
HWY_NOINLINE void dot_q3k(const DotJob& job) noexcept {
  dot_packed_or_plain<KernelK<Q3k<ThreeBitCode>>, KernelK<Q3k<PlainCode>>>(job);
}
HWY_NOINLINE void dot_q4k(const DotJob& job) noexcept {
  dot_packed_or_plain<KernelK<Q4k<NibbleCode>>, KernelK<Q4k<PlainCode>>>(job);
}
HWY_NOINLINE void dot_q5k(const DotJob& job) noexcept {
  dot_packed_or_plain<KernelK<Q5k<FiveBitCode>>, KernelK<Q5k<PlainCode>>>(job);
}
HWY_NOINLINE void dot_q6k(const DotJob& job) noexcept {
  dot_packed_or_plain<KernelK<Q6k<SixBitCode>>, KernelK<Q6k<PlainCode>>>(job);
}

}  // namespace

void fill_dotk(KernelTable& table) {
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ2k)] = dot_q2k;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ3k)] = dot_q3k;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ4k)] = dot_q4k;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ5k)] = dot_q5k;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ6k)] = dot_q6k;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
