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

/// Vector v of nibbles: group v in the low, group v + 4 in the high ones.
template <int T, int R>
CYB_FN void nibble_steps(const std::uint8_t* vectors, int v, const Record<T>& rec, Acc (&a)[T][R]) {
  B low[R], high[R];
  const B mask = bset(15);
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    const B w = bload(row_bytes(vectors, h));
    low[h] = band(w, mask);
    high[h] = band(bshr<4>(w), mask);
  }
  group_step<T, R>(low, static_cast<std::size_t>(v), rec, a);
  group_step<T, R>(high, static_cast<std::size_t>(v) + 4, rec, a);
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

/// Low nibbles of vector V plus bit V of `high` (group V), or high nibbles plus bit V + 4 (group V
/// + 4).
template <int V, bool kHighGroup>
CYB_FN B five_bits(B nibbles, B bits) {
  const B mask = bset(15);
  if constexpr (kHighGroup) {
    return bor(band(bshr<4>(nibbles), mask), move_bit<V + 4, 4>(bits));
  } else {
    return bor(band(nibbles, mask), move_bit<V, 4>(bits));
  }
}

template <int T, int R, int V, bool kHighGroup>
CYB_FN void five_bit_group(const std::uint8_t* low, const std::uint8_t* high, const Record<T>& rec,
                           Acc (&a)[T][R]) {
  B w[R];
  CYB_UNROLL for (int h = 0; h < R; ++h) {
    w[h] = five_bits<V, kHighGroup>(bload(row_bytes(low + 64 * V, h)), bload(row_bytes(high, h)));
  }
  group_step<T, R>(w, V + (kHighGroup ? 4 : 0), rec, a);
}

template <int T, int R, int V, bool kBoth>
CYB_FN void five_bit_steps(const std::uint8_t* low, const std::uint8_t* high, const Record<T>& rec,
                           Acc (&a)[T][R]) {
  five_bit_group<T, R, V, false>(low, high, rec, a);
  if constexpr (kBoth) five_bit_group<T, R, V, true>(low, high, rec, a);
}

/// Sums of w q, w < 32, over a 32-block in two halves of 16 (a 16-bit sum of all would overflow).
template <int T, int R>
CYB_FN void five_bit_halves(const std::uint8_t* low, const std::uint8_t* high, const Record<T>& rec,
                            Acc (&first)[T][R], Acc (&last)[T][R]) {
  start_zero<T, R>(first);
  five_bit_group<T, R, 0, false>(low, high, rec, first);
  five_bit_group<T, R, 1, false>(low, high, rec, first);
  five_bit_group<T, R, 2, false>(low, high, rec, first);
  five_bit_group<T, R, 3, false>(low, high, rec, first);
  start_zero<T, R>(last);
  five_bit_group<T, R, 0, true>(low, high, rec, last);
  five_bit_group<T, R, 1, true>(low, high, rec, last);
  five_bit_group<T, R, 2, true>(low, high, rec, last);
  five_bit_group<T, R, 3, true>(low, high, rec, last);
}

template <int T, int R>
CYB_FN void five_bit_sums(const std::uint8_t* low, const std::uint8_t* high, const Record<T>& rec,
                          I (&sums)[T][R]) {
  Acc first[T][R], last[T][R];
  five_bit_halves<T, R>(low, high, rec, first, last);
  CYB_UNROLL for (int t = 0; t < T; ++t) {
    CYB_UNROLL for (int h = 0; h < R; ++h) sums[t][h] =
        iadd(acc_sum(first[t][h]), acc_sum(last[t][h]));
  }
}

}  // namespace
}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
