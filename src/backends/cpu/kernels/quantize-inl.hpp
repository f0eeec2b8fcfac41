// Quantisation of 32 activations to one record: dx = max / 127, q = rne(x * (127 / max)), sums of q
// in the forms that the dot kernels start from. A non-finite value makes dx NaN, so that it
// surfaces in every sum. Once per ISA.
#if defined(CYB_CPU_QUANTIZE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CYB_CPU_QUANTIZE_INL
#undef CYB_CPU_QUANTIZE_INL
#else
#define CYB_CPU_QUANTIZE_INL
#endif

#include "backends/cpu/kernels/math-inl.hpp"
#include "backends/cpu/kernels/table.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr float kTinyMax = 4e-37f;  // below it 127 / max overflows: the block counts as zero
constexpr std::int32_t kInfinityBits = 0x7F800000;

template <class T>
CYB_FN void put_word(std::uint8_t* record, std::size_t word, T value) {
  static_assert(sizeof(T) == 4);
  std::memcpy(record + 4 * word, &value, 4);
}

/// A block without digits: dx = sx = `scale` (zero, or NaN for a non-finite block).
CYB_FN void write_empty_record(float scale, std::size_t n_tokens, std::size_t t,
                               std::uint8_t* record) {
  for (std::size_t word = 0; word < kRecordBytes / 4; ++word)
    put_word(record, word * n_tokens + t, 0);
  put_word(record, kDx * n_tokens + t, scale);
  put_word(record, kSx * n_tokens + t, scale);
}

#if CYB_SIMD

CYB_FN std::int32_t largest_magnitude_bits(const __m256 (&x)[4]) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i m[4];
  CYB_UNROLL for (int i = 0; i < 4; ++i) m[i] = _mm256_and_si256(_mm256_castps_si256(x[i]), mask);
  const __m256i most = _mm256_max_epi32(_mm256_max_epi32(m[0], m[1]), _mm256_max_epi32(m[2], m[3]));
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xB1));
  return _mm_cvtsi128_si32(half);
}

CYB_FN __m256i to_bytes(const __m256 (&x)[4], float inverse) {
  const __m256 factor = _mm256_set1_ps(inverse);
  __m256i w[4];
  CYB_UNROLL for (int i = 0; i < 4; ++i) w[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));
  const __m256i bytes =
      _mm256_packs_epi16(_mm256_packs_epi32(w[0], w[1]), _mm256_packs_epi32(w[2], w[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/// Writes token t of a tile of n_tokens for one block.
CYB_FN void write_record(const float* x, std::size_t n_tokens, std::size_t t,
                         std::uint8_t* record) {
  const __m256 v[4] = {_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8), _mm256_loadu_ps(x + 16),
                       _mm256_loadu_ps(x + 24)};
  const std::int32_t bits = largest_magnitude_bits(v);
  float most;
  std::memcpy(&most, &bits, 4);
  if (bits >= kInfinityBits || most < kTinyMax) {
    write_empty_record(bits >= kInfinityBits ? __builtin_nanf("") : 0.0f, n_tokens, t, record);
    return;
  }
  const __m256i q = to_bytes(v, 127.0f / most);
  alignas(32) std::uint32_t groups[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(groups), q);
  for (std::size_t g = 0; g < 8; ++g) put_word(record, g * n_tokens + t, groups[g]);
  // Pair sums of each half, in every word of the half.
  __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0x4E));
  pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0xB1));
  const __m128i first = _mm256_castsi256_si128(pairs), last = _mm256_extracti128_si256(pairs, 1);
  const __m128i minus = _mm_sub_epi16(_mm_setzero_si128(), _mm_add_epi16(first, last));
  const __m128i sums = _mm_madd_epi16(_mm_unpacklo_epi32(first, last), _mm_set1_epi16(1));
  const std::int32_t a = _mm_cvtsi128_si32(sums), b = _mm_extract_epi32(sums, 1);
  const float dx = most * (1.0f / 127.0f);
  put_word(record, kDx * n_tokens + t, dx);
  put_word(record, kSx * n_tokens + t, dx * static_cast<float>(a + b));
  put_word(record, kStart8 * n_tokens + t, _mm_cvtsi128_si32(_mm_slli_epi16(minus, 3)));
  put_word(record, kStart16 * n_tokens + t, _mm_cvtsi128_si32(_mm_slli_epi16(minus, 4)));
  const __m128i zero = _mm_setzero_si128();
  put_word(record, kStart32a * n_tokens + t,
           _mm_cvtsi128_si32(_mm_slli_epi16(_mm_sub_epi16(zero, first), 5)));
  put_word(record, kStart32b * n_tokens + t,
           _mm_cvtsi128_si32(_mm_slli_epi16(_mm_sub_epi16(zero, last), 5)));
  put_word(record, kHalfSums * n_tokens + t,
           (static_cast<std::uint32_t>(a) & 0xFFFFu) | static_cast<std::uint32_t>(b) << 16);
}

#else

CYB_FN std::uint32_t make_pair16(std::int32_t low, std::int32_t high) {
  return (static_cast<std::uint32_t>(low) & 0xFFFFu) | (static_cast<std::uint32_t>(high) << 16);
}

/// Writes token t of a tile of n_tokens for one block.
CYB_FN void write_record(const float* x, std::size_t n_tokens, std::size_t t,
                         std::uint8_t* record) {
  std::int32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    std::int32_t b;
    std::memcpy(&b, x + i, 4);
    b &= 0x7FFFFFFF;
    bits = b > bits ? b : bits;
  }
  float most;
  std::memcpy(&most, &bits, 4);
  if (bits >= kInfinityBits || most < kTinyMax) {
    write_empty_record(bits >= kInfinityBits ? __builtin_nanf("") : 0.0f, n_tokens, t, record);
    return;
  }
  const float inverse = 127.0f / most;
  std::int8_t q[32];
  std::int32_t sums[2][2] = {};  // [half][k mod 4 / 2]
  for (std::size_t i = 0; i < 32; ++i) {
    const float rounded = x[i] * inverse + kRoundMagic;
    std::int32_t b;
    std::memcpy(&b, &rounded, 4);
    q[i] = static_cast<std::int8_t>(b - kRoundMagicBits);
    sums[i / 16][i % 4 / 2] += q[i];
  }
  for (std::size_t g = 0; g < 8; ++g) std::memcpy(record + 4 * (g * n_tokens + t), q + 4 * g, 4);
  const std::int32_t a0 = sums[0][0], a1 = sums[0][1], b0 = sums[1][0], b1 = sums[1][1];
  const float dx = most * (1.0f / 127.0f);
  put_word(record, kDx * n_tokens + t, dx);
  put_word(record, kSx * n_tokens + t, dx * static_cast<float>(a0 + a1 + b0 + b1));
  put_word(record, kStart8 * n_tokens + t, make_pair16(-8 * (a0 + b0), -8 * (a1 + b1)));
  put_word(record, kStart16 * n_tokens + t, make_pair16(-16 * (a0 + b0), -16 * (a1 + b1)));
  put_word(record, kStart32a * n_tokens + t, make_pair16(-32 * a0, -32 * a1));
  put_word(record, kStart32b * n_tokens + t, make_pair16(-32 * b0, -32 * b1));
  put_word(record, kHalfSums * n_tokens + t, make_pair16(a0 + a1, b0 + b1));
}

#endif

}  // namespace
}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle
