// Dot products of panels in 32-blocks (q4, q4_1, q5_0, q5_1, q8) with int8 activations: exact
// integer sums per block, then one fixed chain of fused multiply-adds over the blocks. The bits
// depend on nothing but the row and the token.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/dot32.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/dot-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

/// acc += d * (dx * sum(w q)); then the affine part m * sx first, where the format has one.
template <int T, int R>
CYB_FN void finish_block(const I (&sums)[T][R], const F (&d)[R], const Record<T>& rec,
                         F (&acc)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    const F dx = vset(rec.f32(kDx, t));
    CYB_UNROLL for (int h = 0; h < R; ++h) acc[t][h] =
        vfma(vmul(icvt(sums[t][h]), dx), d[h], acc[t][h]);
  }
}

template <int T, int R>
CYB_FN void add_minimum(const F (&m)[R], const Record<T>& rec, F (&acc)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    const F sx = vset(rec.f32(kSx, t));
    CYB_UNROLL for (int h = 0; h < R; ++h) acc[t][h] = vfma(m[h], sx, acc[t][h]);
  }
}

template <int R>
CYB_FN void load_scales(const std::uint8_t* p, F (&d)[R]) {
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    d[h] = load_half(reinterpret_cast<const std::uint16_t*>(p) + static_cast<std::size_t>(h) * kL);
  }
}

/// Q4_0: 16 f16 d, 256 nibbles. I = sum (w - 8) q. Q5_0: 64 more bytes of high bits, w - 16.
template <class Code, QuantField kStart>
struct Centred {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 32, kSubBlocks = 1, kBytes = kHeader + Code::kBytes;
  template <int T, int R>
  CYB_FN void block(const std::uint8_t* p, const Record<T>& rec, F (&acc)[T][R]) {
    Acc a[T][R];
    start<T, R>(rec, kStart, a);
    all_steps<Code>(p + kHeader, rec, a);
    I sums[T][R];
    sum_all<T, R>(a, sums);
    F d[R];
    load_scales<R>(p, d);
    finish_block<T, R>(sums, d, rec, acc);
  }
};

/// Q4_1: 16 f16 d, 16 f16 m, 256 nibbles.
template <class Code>
struct Q4_1 {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 64, kSubBlocks = 1, kBytes = kHeader + Code::kBytes;
  template <int T, int R>
  CYB_FN void block(const std::uint8_t* p, const Record<T>& rec, F (&acc)[T][R]) {
    Acc a[T][R];
    start_zero<T, R>(a);
    all_steps<Code>(p + kHeader, rec, a);
    I sums[T][R];
    sum_all<T, R>(a, sums);
    F d[R];
    load_scales<R>(p + 32, d);
    add_minimum<T, R>(d, rec, acc);
    load_scales<R>(p, d);
    finish_block<T, R>(sums, d, rec, acc);
  }
};

/// Q5_1: as Q4_1 with high bits. Two 16-bit sums: a whole block could reach 62992.
template <class Code>
struct Q5_1 {
  using CodeType = Code;
  static constexpr std::size_t kHeader = 64, kSubBlocks = 1, kBytes = kHeader + Code::kBytes;
  template <int T, int R>
  CYB_FN void block(const std::uint8_t* p, const Record<T>& rec, F (&acc)[T][R]) {
    Acc first[T][R], last[T][R];
    start_zero<T, R>(first);
    start_zero<T, R>(last);
    half_steps<Code>(p + kHeader, rec, first, last);
    I sums[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) {
        sums[t][h] = iadd(acc_sum(first[t][h]), acc_sum(last[t][h]));
      }
    }
    F d[R];
    load_scales<R>(p + 32, d);
    add_minimum<T, R>(d, rec, acc);
    load_scales<R>(p, d);
    finish_block<T, R>(sums, d, rec, acc);
  }
};

/// Q8_0: 16 f16 d, 8 groups of 64 int8.
struct Q8 {
  static constexpr std::size_t kBytes = 544;
  template <int T, int R>
  CYB_FN void block(const std::uint8_t* p, const Record<T>& rec, F (&acc)[T][R]) {
    decltype(sw_start(p)) a[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) a[t][h] = sw_start(rec.word(kStart8, t));
    }
    CYB_UNROLL for (int g = 0; g < 8; ++g) {
      CYB_UNROLL for (int h = 0; h < R; ++h) {
        const SignedWeight w = sw_load(p + 32 + 64 * g + 4 * kL * static_cast<std::size_t>(h));
        CYB_UNROLL for (int t = 0; t < T; ++t) {
          a[t][h] = sw_step(a[t][h], w, bspread(rec.word(static_cast<std::size_t>(g), t)));
          CYB_ORDER(a[t][h]);
        }
      }
    }
    I sums[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) sums[t][h] = sw_sum(a[t][h]);
    }
    F d[R];
    load_scales<R>(p, d);
    finish_block<T, R>(sums, d, rec, acc);
  }
};

template <class Format>
struct Kernel32 {
  using FormatType = Format;
  template <int T, int R>
  CYB_FN void tile(const DotJob& job, const std::uint8_t* acts, std::size_t ahead, float* out) {
    F acc[T][R];
    CYB_UNROLL for (int t = 0; t < T; ++t) {
      CYB_UNROLL for (int h = 0; h < R; ++h) acc[t][h] = vzero();
    }
    const std::uint8_t* p = job.panel;
    for (std::size_t b = 0; b < job.n_blocks; ++b) {
      prefetch_block<Format::kBytes>(p + ahead);
      Format::template block<T, R>(p, Record<T>{acts}, acc);
      p += Format::kBytes;
      acts += T * kRecordBytes;
    }
    store_tile<T, R>(acc, out);
  }
};

HWY_NOINLINE void dot_q8(const DotJob& job) noexcept {
  all_tiles<Kernel32<Q8>>(job, kPrefetchBytes);
}
HWY_NOINLINE void dot_q4(const DotJob& job) noexcept {
  dot_packed_or_plain<Kernel32<Centred<NibbleCode, kStart8>>,
                      Kernel32<Centred<PlainCode, kStart8>>>(job);
}
HWY_NOINLINE void dot_q4_1(const DotJob& job) noexcept {
  dot_packed_or_plain<Kernel32<Q4_1<NibbleCode>>, Kernel32<Q4_1<PlainCode>>>(job);
}
HWY_NOINLINE void dot_q5_0(const DotJob& job) noexcept {
  dot_packed_or_plain<Kernel32<Centred<FiveBitCode, kStart16>>,
                      Kernel32<Centred<PlainCode, kStart16>>>(job);
}
HWY_NOINLINE void dot_q5_1(const DotJob& job) noexcept {
  dot_packed_or_plain<Kernel32<Q5_1<FiveBitCode>>, Kernel32<Q5_1<PlainCode>>>(job);
}

}  // namespace

void fill_dot32(KernelTable& table) {
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ4)] = dot_q4;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ4_1)] = dot_q4_1;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ5_0)] = dot_q5_0;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ5_1)] = dot_q5_1;
  table.dot_q8[static_cast<std::size_t>(PanelFormat::kQ8)] = dot_q8;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
