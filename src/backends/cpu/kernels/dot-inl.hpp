// Shared pieces of the int8 dot kernels: access to records, nibble and five-bit steps, prefetch.
// Once per ISA.
#if defined(CYB_CPU_DOT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CYB_CPU_DOT_INL
#undef CYB_CPU_DOT_INL
#else
#define CYB_CPU_DOT_INL
#endif

#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/kernels/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr std::size_t kPrefetchBytes = 2048;
constexpr std::size_t kUnpackTokens = 24;  // from here on unpacking once pays

template <std::size_t kBytes>
CYB_FN void prefetch_block(const std::uint8_t* p) {
  CYB_UNROLL for (std::size_t i = 0; i < (kBytes + 63) / 64; ++i)
      __builtin_prefetch(p + 64 * i, 0, 3);
}

/// The record of a tile of T tokens for one 32-block.
template <int T>
struct Record {
  const std::uint8_t* p;
  CYB_FN_MEMBER const std::uint8_t* word(std::size_t field, int t) const {
    return p + 4 * (field * T + static_cast<std::size_t>(t));
  }
  CYB_FN_MEMBER float f32(std::size_t field, int t) const { return word_f32(word(field, t)); }
};

template <int T, int R>
CYB_FN void start(const Record<T>& rec, std::size_t field, Acc (&a)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) a[t][h] = acc_start(rec.word(field, t));
  }
}

template <int T, int R>
CYB_FN void start_zero(Acc (&a)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) a[t][h] = acc_zero();
  }
}

template <int T, int R>
CYB_FN void sum_all(const Acc (&a)[T][R], I (&sums)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) sums[t][h] = acc_sum(a[t][h]);
  }
}

/// One group of 4 k: R weight vectors against T tokens. The order barrier keeps the compiler from
/// hoisting products and spilling.
template <int T, int R>
CYB_FN void group_step(const B (&w)[R], std::size_t group, const Record<T>& rec, Acc (&a)[T][R]) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    const B x = bspread(rec.word(group, t));
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      a[t][h] = acc_step(a[t][h], w[h], x);
      CYB_ORDER(a[t][h]);
    }
  }
}

CYB_FN const std::uint8_t* row_bytes(const std::uint8_t* vectors, int h) {
  return vectors + 4 * kL * static_cast<std::size_t>(h);
}

/// Bit `Bit` of each byte moved to bit `To`, the rest cleared.
template <int Bit, int To>
CYB_FN B move_bit(B bits) {
  const B mask = bset(1 << To);
  if constexpr (To > Bit) return band(bshl<To - Bit>(bits), mask);
  if constexpr (To < Bit) return band(bshr<Bit - To>(bits), mask);
  return band(bits, mask);
}

/// Two bits of group G from a plane vector (group g: bits 2 (g mod 4) of vector g / 4), moved to
/// bit To.
template <int G, int To>
CYB_FN B two_bits(B plane) {
  constexpr int kFrom = 2 * (G % 4);
  const B mask = bset(3 << To);
  if constexpr (To > kFrom) return band(bshl<To - kFrom>(plane), mask);
  if constexpr (To < kFrom) return band(bshr<kFrom - To>(plane), mask);
  return band(plane, mask);
}

// How the 8 groups of a 32-block are stored: at<G> gives the bytes of group G for row vector h.
struct PlainCode {  // one byte per weight: what panels are unpacked to for many tokens
  static constexpr std::size_t kBytes = 512;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    return bload(row_bytes(q + 64 * G, h));
  }
};
struct NibbleCode {
  static constexpr std::size_t kBytes = 256;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    const B w = bload(row_bytes(q + 64 * (G % 4), h));
    return G < 4 ? band(w, bset(15)) : band(bshr<4>(w), bset(15));
  }
};
struct FiveBitCode {  // nibbles, then a plane of bit 4
  static constexpr std::size_t kBytes = 320;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    return bor(NibbleCode::at<G>(q, h), move_bit<G, 4>(bload(row_bytes(q + 256, h))));
  }
};
struct SixBitCode {  // nibbles, then a plane of bits 4 and 5
  static constexpr std::size_t kBytes = 384;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    const B high = bload(row_bytes(q + 256 + 64 * (G / 4), h));
    return bor(NibbleCode::at<G>(q, h), two_bits<G, 4>(high));
  }
};
struct TwoBitCode {
  static constexpr std::size_t kBytes = 128;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    return two_bits<G, 0>(bload(row_bytes(q + 64 * (G / 4), h)));
  }
};
struct ThreeBitCode {  // a plane of bits 0 and 1, then one of bit 2
  static constexpr std::size_t kBytes = 192;
  template <int G>
  CYB_FN B at(const std::uint8_t* q, int h) {
    return bor(TwoBitCode::at<G>(q, h), move_bit<G, 2>(bload(row_bytes(q + 128, h))));
  }
};

template <class Code, int G, int T, int R>
CYB_FN void code_step(const std::uint8_t* q, const Record<T>& rec, Acc (&a)[T][R]) {
  B w[R];
  CYB_UNROLL for (int h = 0; h < R; ++h) w[h] = Code::template at<G>(q, h);
  group_step<T, R>(w, G, rec, a);
}

/// Groups 0..3, k < 16.
template <class Code, int T, int R>
CYB_FN void first_steps(const std::uint8_t* q, const Record<T>& rec, Acc (&a)[T][R]) {
  code_step<Code, 0>(q, rec, a);
  code_step<Code, 1>(q, rec, a);
  code_step<Code, 2>(q, rec, a);
  code_step<Code, 3>(q, rec, a);
}

/// Groups 4..7, k >= 16.
template <class Code, int T, int R>
CYB_FN void last_steps(const std::uint8_t* q, const Record<T>& rec, Acc (&a)[T][R]) {
  code_step<Code, 4>(q, rec, a);
  code_step<Code, 5>(q, rec, a);
  code_step<Code, 6>(q, rec, a);
  code_step<Code, 7>(q, rec, a);
}

/// Vector V of nibbles: one load for groups V and V + 4.
template <int V, int T, int R>
CYB_FN void nibble_steps(const std::uint8_t* q, const Record<T>& rec, Acc (&a)[T][R]) {
  B low[R], high[R];
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    low[h] = NibbleCode::at<V>(q, h);
    high[h] = NibbleCode::at<V + 4>(q, h);
  }
  group_step<T, R>(low, V, rec, a);
  group_step<T, R>(high, V + 4, rec, a);
}

template <class Code, int T, int R>
CYB_FN void all_steps(const std::uint8_t* q, const Record<T>& rec, Acc (&a)[T][R]) {
  if constexpr (Code::kBytes == NibbleCode::kBytes) {
    nibble_steps<0>(q, rec, a);
    nibble_steps<1>(q, rec, a);
    nibble_steps<2>(q, rec, a);
    nibble_steps<3>(q, rec, a);
  } else {
    first_steps<Code>(q, rec, a);
    last_steps<Code>(q, rec, a);
  }
}

/// Sums of w q over each half of a 32-block: a 16-bit sum of all would overflow, or scales differ.
template <class Code, int T, int R>
CYB_FN void half_steps(const std::uint8_t* q, const Record<T>& rec, Acc (&first)[T][R],
                       Acc (&last)[T][R]) {
  first_steps<Code>(q, rec, first);
  last_steps<Code>(q, rec, last);
}

template <class Code, int G>
CYB_FN void unpack_group(const std::uint8_t* q, std::uint8_t* to) {
  CYB_UNROLL for (int h = 0; h < static_cast<int>(kR); ++h) {
    bstore(Code::template at<G>(q, h), to + 64 * G + 4 * kL * static_cast<std::size_t>(h));
  }
}

/// `n` blocks of Format: the header as it is, then its 32-blocks one byte per weight.
template <class Format>
CYB_FN void unpack_panel(const std::uint8_t* p, std::size_t n, std::uint8_t* to) {
  using Code = typename Format::CodeType;
  for (std::size_t b = 0; b < n; ++b) {
    prefetch_block<Format::kBytes>(p + kPrefetchBytes);
    std::memcpy(to, p, Format::kHeader);
    const std::uint8_t* q = p + Format::kHeader;
    to += Format::kHeader;
    for (std::size_t j = 0; j < Format::kSubBlocks; ++j) {
      unpack_group<Code, 0>(q, to);
      unpack_group<Code, 1>(q, to);
      unpack_group<Code, 2>(q, to);
      unpack_group<Code, 3>(q, to);
      unpack_group<Code, 4>(q, to);
      unpack_group<Code, 5>(q, to);
      unpack_group<Code, 6>(q, to);
      unpack_group<Code, 7>(q, to);
      q += Code::kBytes;
      to += PlainCode::kBytes;
    }
    p += Format::kBytes;
  }
}

template <int T, int R>
CYB_FN void store_tile(const F (&acc)[T][R], float* out) {
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) {
      vstore(acc[t][h], out + 16 * t + static_cast<std::size_t>(h) * kL);
    }
  }
}

/// All tokens of a job in tiles of 4 and a rest. Kernel::tile<T, R>(job, acts, ahead, out).
template <class Kernel>
CYB_FN void all_tiles(const DotJob& job, std::size_t ahead) {
  constexpr int kTile = static_cast<int>(kTileTokens);
  const std::uint8_t* acts = job.acts;
  float* out = job.out;
  std::size_t left = job.n_tokens;
  for (; left >= kTileTokens; left -= kTileTokens) {
    Kernel::template tile<kTile, kR>(job, acts, ahead, out);
    ahead = 0;
    acts += kTileTokens * job.n_blocks * kRecordBytes;
    out += kTileTokens * 16;
  }
  if (left == 1) Kernel::template tile<1, kR>(job, acts, ahead, out);
  if (left == 2) Kernel::template tile<2, kR>(job, acts, ahead, out);
  if (left == 3) Kernel::template tile<3, kR>(job, acts, ahead, out);
}

/// Packed panels for few tokens; for many, codes are unpacked once.
template <class Packed, class Plain>
CYB_FN void dot_packed_or_plain(const DotJob& job) {
  using Format = typename Packed::FormatType;
  if (job.n_tokens < kUnpackTokens) {
    all_tiles<Packed>(job, kPrefetchBytes);
    return;
  }
  unpack_panel<Format>(job.panel, job.n_blocks / Format::kSubBlocks, job.scratch);
  DotJob plain = job;
  plain.panel = job.scratch;
  all_tiles<Plain>(plain, 0);
}

}  // namespace
}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
