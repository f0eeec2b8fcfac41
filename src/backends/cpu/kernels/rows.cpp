// Kernels over rows of f32: norm, quantisation of activations, elementwise maps, rope, half
// conversion.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/math-inl.hpp"
#include "backends/cpu/kernels/quantize-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

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
struct Offset {
  float term;
  CYB_FN_MEMBER F of(F a, F) const { return vadd(a, vset(term)); }
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
HWY_NOINLINE void offset(const float* a, float b, std::size_t n, float* y) noexcept {
  each(a, a, n, y, Offset{b});
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
  table.offset = offset;
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
