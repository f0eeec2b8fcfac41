// Kernels over rows of f32: norm, quantisation of activations, elementwise maps, rope, half
// conversion.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr float kTinyMax = 4e-37f;  // below it 127 / max overflows: the block counts as zero
constexpr std::int32_t kInfinityBits = 0x7F800000;

struct Quantized {
  float dx, sx;
  std::uint32_t first, last;  // pair sums of both halves
};

CYB_FN std::int32_t largest_magnitude_bits(const float* x) {
  I most = iset(0);
  CYB_UNROLL for (std::size_t i = 0; i < 32; i += kL) most =
      imax(most, iand(vbits(vload(x + i)), iset(0x7FFFFFFF)));
  return largest(most);
}

/// 32 values to int8: dx = max / 127, q = rne(x * (127 / max)). A non-finite value makes dx NaN, so
/// that it surfaces in every sum.
CYB_FN Quantized quantize32(const float* x, std::int8_t* q) {
  const std::int32_t bits = largest_magnitude_bits(x);
  float most;
  std::memcpy(&most, &bits, 4);
  if (bits >= kInfinityBits || most < kTinyMax) {
    std::memset(q, 0, 32);
    const float scale = bits >= kInfinityBits ? __builtin_nanf("") : 0.0f;
    return {scale, scale, 0, 0};
  }
  const F inverse = vset(127.0f / most);
  CYB_UNROLL for (std::size_t i = 0; i < 32; i += kL) {
    const F rounded = vadd(vmul(vload(x + i), inverse), vset(kRoundMagic));
    store_s8(isub(vbits(rounded), iset(kRoundMagicBits)), q + i);
  }
  Quantized out{most * (1.0f / 127.0f), 0.0f, pair_sums(q), pair_sums(q + 16)};
  return out;
}

CYB_FN std::int32_t low16(std::uint32_t pair) {
  return static_cast<std::int16_t>(pair & 0xFFFFu);
}
CYB_FN std::int32_t high16(std::uint32_t pair) {
  return static_cast<std::int16_t>(pair >> 16);
}
CYB_FN std::uint32_t make_pair16(std::int32_t low, std::int32_t high) {
  return (static_cast<std::uint32_t>(low) & 0xFFFFu) | (static_cast<std::uint32_t>(high) << 16);
}
template <class T>
CYB_FN void put_word(std::uint8_t* record, std::size_t word, T value) {
  static_assert(sizeof(T) == 4);
  std::memcpy(record + 4 * word, &value, 4);
}

/// Writes token t of a tile of n_tokens for one block.
CYB_FN void write_record(const float* x, std::size_t n_tokens, std::size_t t,
                         std::uint8_t* record) {
  alignas(32) std::int8_t q[32];
  const Quantized z = quantize32(x, q);
  for (std::size_t g = 0; g < 8; ++g) std::memcpy(record + 4 * (g * n_tokens + t), q + 4 * g, 4);
  const std::int32_t a0 = low16(z.first), a1 = high16(z.first), b0 = low16(z.last),
                     b1 = high16(z.last);
  const float sx = z.dx * static_cast<float>(a0 + a1 + b0 + b1);
  put_word(record, kDx * n_tokens + t, z.dx);
  put_word(record, kSx * n_tokens + t, sx);
  put_word(record, kStart8 * n_tokens + t, make_pair16(-8 * (a0 + b0), -8 * (a1 + b1)));
  put_word(record, kStart16 * n_tokens + t, make_pair16(-16 * (a0 + b0), -16 * (a1 + b1)));
  put_word(record, kStart32a * n_tokens + t, make_pair16(-32 * a0, -32 * a1));
  put_word(record, kStart32b * n_tokens + t, make_pair16(-32 * b0, -32 * b1));
  put_word(record, kHalfSums * n_tokens + t, make_pair16(a0 + a1, b0 + b1));
}

HWY_NOINLINE void quantize(const float* x, std::size_t stride, std::size_t n, std::size_t n_tokens,
                           std::uint8_t* records) noexcept {
  for (std::size_t k = 0; k < n; k += 32) {
    for (std::size_t t = 0; t < n_tokens; ++t) {
      const float* from = x + t * stride + k;
      if (n - k >= 32) {
        write_record(from, n_tokens, t, records);
      } else {
        float padded[32] = {};
        std::memcpy(padded, from, (n - k) * sizeof(float));
        write_record(padded, n_tokens, t, records);
      }
    }
    records += kRecordBytes * n_tokens;
  }
}

HWY_NOINLINE void rms_norm(const float* x, const float* gain, std::size_t n, float eps,
                           float* y) noexcept {
  F acc[kR];
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[h] = vzero();
  const std::size_t whole = n / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) {
      const F v = vload(x + i + h * kL);
      acc[h] = vfma(v, v, acc[h]);
    }
  }
  alignas(64) float lanes[16] = {};
  if (whole != n) {
    std::memcpy(lanes, x + whole, (n - whole) * sizeof(float));
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) {
      const F v = vload(lanes + h * kL);
      acc[h] = vfma(v, v, acc[h]);
    }
  }
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) vstore(acc[h], lanes + h * kL);
  const float mean = tree_sum(lanes) / static_cast<float>(n);
  const float inverse = 1.0f / __builtin_sqrtf(mean + eps);
  std::size_t i = 0;
  for (; i + kL <= n; i += kL)
    vstore(vmul(vmul(vload(x + i), vset(inverse)), vload(gain + i)), y + i);
  for (; i < n; ++i) y[i] = x[i] * inverse * gain[i];
}

// Elementwise loops: whole vectors, then the rest through a padded vector.
template <class Op>
CYB_FN void each(const float* a, const float* b, std::size_t n, float* y, const Op& op) {
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(op.of(vload(a + i), vload(b + i)), y + i);
  if (i == n) return;
  alignas(64) float rest[3][16] = {};
  std::memcpy(rest[0], a + i, (n - i) * sizeof(float));
  std::memcpy(rest[1], b + i, (n - i) * sizeof(float));
  vstore(op.of(vload(rest[0]), vload(rest[1])), rest[2]);
  std::memcpy(y + i, rest[2], (n - i) * sizeof(float));
}

struct Sum {
  CYB_FN_MEMBER F of(F a, F b) const { return vadd(a, b); }
};
struct Difference {
  CYB_FN_MEMBER F of(F a, F b) const { return vsub(a, b); }
};
struct Product {
  CYB_FN_MEMBER F of(F a, F b) const { return vmul(a, b); }
};
struct Scaled {
  float factor;
  CYB_FN_MEMBER F of(F a, F) const { return vmul(a, vset(factor)); }
};
struct Capped {
  float cap;
  CYB_FN_MEMBER F of(F a, F) const { return vmul(vset(cap), vtanh(vdiv(a, vset(cap)))); }
};
template <RowOp kOp>
struct Mapped {
  CYB_FN_MEMBER F of(F a, F) const { return activate<kOp>(a); }
};
template <RowOp kOp>
struct Gated {
  CYB_FN_MEMBER F of(F a, F b) const { return vmul(activate<kOp>(a), b); }
};

HWY_NOINLINE void add(const float* a, const float* b, std::size_t n, float* y) noexcept {
  each(a, b, n, y, Sum{});
}
HWY_NOINLINE void sub(const float* a, const float* b, std::size_t n, float* y) noexcept {
  each(a, b, n, y, Difference{});
}
HWY_NOINLINE void mul(const float* a, const float* b, std::size_t n, float* y) noexcept {
  each(a, b, n, y, Product{});
}
HWY_NOINLINE void scale(const float* a, float b, std::size_t n, float* y) noexcept {
  each(a, a, n, y, Scaled{b});
}
HWY_NOINLINE void softcap(const float* x, float cap, std::size_t n, float* y) noexcept {
  each(x, x, n, y, Capped{cap});
}
template <RowOp kOp>
HWY_NOINLINE void map(const float* x, std::size_t n, float* y) noexcept {
  each(x, x, n, y, Mapped<kOp>{});
}
template <RowOp kOp>
HWY_NOINLINE void gate(const float* g, const float* up, std::size_t n, float* y) noexcept {
  each(g, up, n, y, Gated<kOp>{});
}

/// y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos, each product rounded.
HWY_NOINLINE void rope_split(float* first, float* second, const float* cos, const float* sin,
                             std::size_t n) noexcept {
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) {
    const F a = vload(first + i), b = vload(second + i), c = vload(cos + i), s = vload(sin + i);
    vstore(vsub(vmul(a, c), vmul(b, s)), first + i);
    vstore(vadd(vmul(a, s), vmul(b, c)), second + i);
  }
  for (; i < n; ++i) {
    const float a = first[i], b = second[i];
    first[i] = a * cos[i] - b * sin[i];
    second[i] = a * sin[i] + b * cos[i];
  }
}

HWY_NOINLINE void rope_pairs(float* x, const float* cos, const float* sin, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

HWY_NOINLINE void to_f16(const float* x, std::size_t n, std::uint16_t* dst) noexcept {
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) store_half(vload(x + i), dst + i);
  if (i == n) return;
  alignas(64) float rest[16] = {};
  std::uint16_t half[16];
  std::memcpy(rest, x + i, (n - i) * sizeof(float));
  store_half(vload(rest), half);
  std::memcpy(dst + i, half, (n - i) * sizeof(std::uint16_t));
}

HWY_NOINLINE void from_f16(const std::uint16_t* x, std::size_t n, float* dst) noexcept {
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(load_half(x + i), dst + i);
  if (i == n) return;
  std::uint16_t half[16] = {};
  float rest[16];
  std::memcpy(half, x + i, (n - i) * sizeof(std::uint16_t));
  vstore(load_half(half), rest);
  std::memcpy(dst + i, rest, (n - i) * sizeof(float));
}

template <RowOp kOp>
CYB_FN void fill_row_op(KernelTable& table) {
  table.map[static_cast<std::size_t>(kOp)] = map<kOp>;
  table.gate[static_cast<std::size_t>(kOp)] = gate<kOp>;
}

}  // namespace

void fill_rows(KernelTable& table) {
  table.quantize = quantize;
  table.rms_norm = rms_norm;
  table.add = add;
  table.sub = sub;
  table.mul = mul;
  table.scale = scale;
  table.softcap = softcap;
  fill_row_op<RowOp::kSilu>(table);
  fill_row_op<RowOp::kGeluErf>(table);
  fill_row_op<RowOp::kGeluTanh>(table);
  fill_row_op<RowOp::kGeluQuick>(table);
  fill_row_op<RowOp::kRelu>(table);
  fill_row_op<RowOp::kSigmoid>(table);
  fill_row_op<RowOp::kTanh>(table);
  table.rope_split = rope_split;
  table.rope_pairs = rope_pairs;
  table.to_f16 = to_f16;
  table.from_f16 = from_f16;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
