// Fine encoders of the 256-value formats. Each sub-block is fitted alone first; then the integer
// scales and minima of the sub-blocks and the two f16 of the block are chosen in turn, each for the
// least error given the other, from several starts.
#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/encoders.hpp"
#include "tensor/formats/scale_search.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256, kMaxSubs = 16;

/// What a block format with a scale and perhaps a minimum for each sub-block can hold.
struct Layout {
  std::size_t n_subs;
  CodeRange codes;
  int scale_lo, scale_hi, min_hi;  // min_hi 0: no minima
  std::size_t length() const noexcept { return kValues / n_subs; }
};

constexpr std::array<float, kValues> kEqual = [] {
  std::array<float, kValues> ones{};
  ones.fill(1);
  return ones;
}();

struct Block {
  float x[kValues];
  const float* w;
  Block(const float* src, const float* weights) noexcept
      : w(weights == nullptr ? kEqual.data() : weights) {
    for (std::size_t i = 0; i < kValues; ++i) x[i] = std::isfinite(src[i]) ? src[i] : 0.0f;
  }
  Run sub(std::size_t k, std::size_t length) const noexcept {
    return {x + k * length, w + k * length, length};
  }
};

/// x ~ (d*scale)*q - dmin*min.
struct State {
  float d = 0, dmin = 0;  // values of f16
  std::array<int, kMaxSubs> scale{}, min{};
  float error = 0;
};

float half(float value) noexcept {
  return f16_to_f32(f32_to_f16(value));
}

float sub_error(const Layout& layout, const Run& run, const State& s, int scale, int min) noexcept {
  const float step = s.d * static_cast<float>(scale);
  if (layout.min_hi == 0) return symmetric_error(run, layout.codes, step);
  return affine_error(run, layout.codes, step, s.dmin * static_cast<float>(min));
}

int nearest(float value, float unit, int lo, int hi) noexcept {
  const float ratio = unit != 0 ? value / unit : 0.0f;
  if (!(ratio > static_cast<float>(lo))) return lo;
  return ratio < static_cast<float>(hi) ? static_cast<int>(std::nearbyint(ratio)) : hi;
}

/// The pair of least error: from the nearest one of `fit`, steps to better neighbours.
float choose_pair(const Layout& layout, const Run& run, const AffineFit& fit, State& s,
                  std::size_t k) noexcept {
  int scale = nearest(fit.scale, s.d, layout.scale_lo, layout.scale_hi);
  int min = nearest(fit.min, s.dmin, 0, layout.min_hi);
  float error = sub_error(layout, run, s, scale, min);
  constexpr int kMoves[8][2] = {{1, 0}, {-1, 0},  {0, 1},  {0, -1},
                                {1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
  const int n_moves = layout.min_hi == 0 ? 2 : 8;
  for (int round = 0; round < 8; ++round) {
    int best = -1;
    for (int m = 0; m < n_moves; ++m) {
      const int a = scale + kMoves[m][0], b = min + kMoves[m][1];
      if (a < layout.scale_lo || a > layout.scale_hi || b < 0 || b > layout.min_hi) continue;
      const float tried = sub_error(layout, run, s, a, b);
      if (!(tried < error)) continue;
      error = tried;
      best = m;
    }
    if (best < 0) break;
    scale += kMoves[best][0];
    min += kMoves[best][1];
  }
  s.scale[k] = scale;
  s.min[k] = min;
  return error;
}

/// The f16 of the block for its integers and codes, by least squares; and each sub-block's own fit.
void refit(const Layout& layout, const Block& block, State& s,
           std::array<AffineFit, kMaxSubs>& fits) noexcept {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
  float codes[kValues];
  for (std::size_t k = 0; k < layout.n_subs; ++k) {
    const Run run = block.sub(k, layout.length());
    const float step = s.d * static_cast<float>(s.scale[k]);
    affine_codes(run, layout.codes, step, s.dmin * static_cast<float>(s.min[k]), codes);
    const CodeSums sums = code_sums(run, codes);
    const double a = s.scale[k], b = s.min[k];
    aa += a * a * static_cast<double>(sums.qq);
    ab += a * b * static_cast<double>(sums.q);
    bb += b * b * static_cast<double>(sums.w);
    xa += a * static_cast<double>(sums.xq);
    xb += b * static_cast<double>(sums.x);
    if (layout.min_hi > 0) {
      fits[k] = solve_affine(sums, true);
    } else if (sums.qq > 0) {
      fits[k].scale = sums.xq / sums.qq;
    }
  }
  const double det = aa * bb - ab * ab;
  double d = aa > 0 ? xa / aa : 0, dmin = 0;
  if (det > 1e-12 * aa * bb) {
    d = (xa * bb - xb * ab) / det;
    dmin = (xa * ab - xb * aa) / det;
    if (dmin < 0) {
      d = xa / aa;
      dmin = 0;
    }
  }
  s.d = half(static_cast<float>(d));
  s.dmin = half(static_cast<float>(dmin));
}

State refined(const Layout& layout, const Block& block, State s,
              std::array<AffineFit, kMaxSubs> fits, int n_rounds) noexcept {
  State best;
  for (int round = 0; round < n_rounds; ++round) {
    s.error = 0;
    for (std::size_t k = 0; k < layout.n_subs; ++k)
      s.error += choose_pair(layout, block.sub(k, layout.length()), fits[k], s, k);
    if (round > 0 && !(s.error < best.error)) break;
    best = s;
    refit(layout, block, s, fits);
  }
  return best;
}

/// Starts: the largest scale (and minimum) at the end of its range, and a little inside and outside
/// of it.
constexpr float kStarts[] = {1.0f, 0.94f, 1.06f, 0.88f};

State best_state(const Layout& layout, const Block& block) noexcept {
  std::array<AffineFit, kMaxSubs> fits{};
  float extreme = 0, largest_min = 0;
  for (std::size_t k = 0; k < layout.n_subs; ++k) {
    const Run run = block.sub(k, layout.length());
    if (layout.min_hi > 0) {
      fits[k] = best_affine(run, layout.codes.hi, true);
    } else {
      fits[k].scale = best_scale(run, layout.codes, 12, -layout.codes.lo / 40);
    }
    if (std::fabs(fits[k].scale) > std::fabs(extreme)) extreme = fits[k].scale;
    largest_min = std::max(largest_min, fits[k].min);
  }
  const int end = layout.scale_lo < 0 ? layout.scale_lo : layout.scale_hi;
  State best;
  bool first = true;
  for (const float start : kStarts) {
    State s;
    s.d = half(extreme / static_cast<float>(end) * start);
    if (layout.min_hi > 0) s.dmin = half(largest_min / static_cast<float>(layout.min_hi) * start);
    const State found = refined(layout, block, s, fits, 5);
    if (!first && !(found.error < best.error)) continue;
    best = found;
    first = false;
  }
  return best;
}

/// Codes of all values as the decoder needs them, `shift` added.
void final_codes(const Layout& layout, const Block& block, const State& s, int shift,
                 std::array<int, kValues>& out) noexcept {
  float codes[kValues];
  for (std::size_t k = 0; k < layout.n_subs; ++k) {
    const std::size_t length = layout.length();
    const float step = s.d * static_cast<float>(s.scale[k]);
    affine_codes(block.sub(k, length), layout.codes, step, s.dmin * static_cast<float>(s.min[k]),
                 codes);
    for (std::size_t i = 0; i < length; ++i)
      out[k * length + i] = static_cast<int>(codes[i]) + shift;
  }
}

std::uint8_t byte(int value) noexcept {
  return static_cast<std::uint8_t>(value);
}

/// Bits 2g..2g+1 of byte l of each half: the two bits from `bit` of code 128*half + 32*g + l.
void put_pairs(const std::array<int, kValues>& codes, int bit, std::byte* dst) noexcept {
  for (std::size_t half_of = 0; half_of < 2; ++half_of) {
    for (std::size_t l = 0; l < 32; ++l) {
      int value = 0;
      for (std::size_t g = 0; g < 4; ++g)
        value |= (codes[128 * half_of + 32 * g + l] >> bit & 3) << (2 * g);
      store(dst + 32 * half_of + l, byte(value));
    }
  }
}

constexpr Layout kQ2k{16, {0, 3}, 0, 15, 15};
constexpr Layout kQ3k{16, {-4, 3}, -32, 31, 0};
constexpr Layout kQ4k{8, {0, 15}, 0, 63, 63};
constexpr Layout kQ5k{8, {0, 31}, 0, 63, 63};
constexpr Layout kQ6k{16, {-32, 31}, -128, 127, 0};

void put_q2k(const Block& block, std::byte* dst) noexcept {
  const State s = best_state(kQ2k, block);
  std::array<int, kValues> codes;
  final_codes(kQ2k, block, s, 0, codes);
  for (std::size_t k = 0; k < 16; ++k) store(dst + k, byte(s.scale[k] | s.min[k] << 4));
  put_pairs(codes, 0, dst + 16);
  store(dst + 80, f32_to_f16(s.d));
  store(dst + 82, f32_to_f16(s.dmin));
}

void put_q3k(const Block& block, std::byte* dst) noexcept {
  const State s = best_state(kQ3k, block);
  std::array<int, kValues> codes;
  final_codes(kQ3k, block, s, 4, codes);  // bit 2 set: no -4
  for (std::size_t l = 0; l < 32; ++l) {
    int high = 0;
    for (std::size_t j = 0; j < 8; ++j) high |= (codes[32 * j + l] >> 2 & 1) << j;
    store(dst + l, byte(high));
  }
  put_pairs(codes, 0, dst + 32);
  int packed[12] = {};
  for (std::size_t k = 0; k < 16; ++k) {
    const int scale = s.scale[k] + 32;
    packed[k % 8] |= (scale & 15) << (k < 8 ? 0 : 4);
    packed[8 + k % 4] |= scale >> 4 << (2 * (k / 4));
  }
  for (std::size_t i = 0; i < 12; ++i) store(dst + 96 + i, byte(packed[i]));
  store(dst + 108, f32_to_f16(s.d));
}

/// The twelve bytes of 6-bit scales and minima of q4k and q5k, see k_scale_min().
void put_scale_mins(const State& s, std::byte* dst) noexcept {
  int packed[12];
  for (std::size_t j = 0; j < 4; ++j) {
    packed[j] = s.scale[j] | s.scale[j + 4] >> 4 << 6;
    packed[j + 4] = s.min[j] | s.min[j + 4] >> 4 << 6;
    packed[j + 8] = (s.scale[j + 4] & 15) | (s.min[j + 4] & 15) << 4;
  }
  for (std::size_t i = 0; i < 12; ++i) store(dst + i, byte(packed[i]));
}

void put_q45k(const Layout& layout, const Block& block, std::byte* dst) noexcept {
  const bool five = layout.codes.hi > 15;
  const State s = best_state(layout, block);
  std::array<int, kValues> codes;
  final_codes(layout, block, s, 0, codes);
  store(dst, f32_to_f16(s.d));
  store(dst + 2, f32_to_f16(s.dmin));
  put_scale_mins(s, dst + 4);
  std::byte* nibbles = dst + (five ? 48 : 16);
  for (std::size_t l = 0; l < 32; ++l) {
    int high = 0;
    for (std::size_t j = 0; j < 8; ++j) high |= (codes[32 * j + l] >> 4) << j;
    for (std::size_t p = 0; p < 4; ++p) {
      const int both = (codes[64 * p + l] & 15) | (codes[64 * p + 32 + l] & 15) << 4;
      store(nibbles + 32 * p + l, byte(both));
    }
    if (five) store(dst + 16 + l, byte(high));
  }
}

void put_q6k(const Block& block, std::byte* dst) noexcept {
  const State s = best_state(kQ6k, block);
  std::array<int, kValues> codes;
  final_codes(kQ6k, block, s, 32, codes);
  for (std::size_t half_of = 0; half_of < 2; ++half_of) {
    for (std::size_t l = 0; l < 64; ++l) {
      const int* at = codes.data() + 128 * half_of + l;
      store(dst + 64 * half_of + l, byte((at[0] & 15) | (at[64] & 15) << 4));
    }
  }
  put_pairs(codes, 4, dst + 128);
  for (std::size_t k = 0; k < 16; ++k) store(dst + 192 + k, static_cast<std::int8_t>(s.scale[k]));
  store(dst + 208, f32_to_f16(s.d));
}

struct Work {
  const float* src;
  const float* weights;
  std::byte* dst;
  std::size_t n;
};

template <class Put>
void each_block(const Work& work, std::size_t bytes, Put put) noexcept {
  std::byte* dst = work.dst;
  for (std::size_t at = 0; at + kValues <= work.n; at += kValues, dst += bytes)
    put(Block(work.src + at, work.weights == nullptr ? nullptr : work.weights + at), dst);
}

}  // namespace

void encode_fine_q2k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept {
  each_block({src, weights, dst, n}, 84, put_q2k);
}
void encode_fine_q3k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept {
  each_block({src, weights, dst, n}, 110, put_q3k);
}
void encode_fine_q4k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept {
  each_block({src, weights, dst, n}, 144,
             [](const Block& block, std::byte* to) noexcept { put_q45k(kQ4k, block, to); });
}
void encode_fine_q5k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept {
  each_block({src, weights, dst, n}, 176,
             [](const Block& block, std::byte* to) noexcept { put_q45k(kQ5k, block, to); });
}
void encode_fine_q6k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept {
  each_block({src, weights, dst, n}, 210, put_q6k);
}

}  // namespace cyb::formats
