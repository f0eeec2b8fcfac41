// Kernels of integer tensors.
#include "backends/cpu/kernels/integers.hpp"

#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/integers.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

/// R rows and a block of 16 outputs, n of which are there.
template <int R>
CYB_FN void tile(const PairsJob& job, std::size_t row, std::size_t at, std::size_t n) {
  I acc[R][kR];
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) acc[r][v] = iset(0);
  }
  const std::int32_t* b = job.b + at * job.n_pairs;
  const std::int32_t* a = job.a + row * job.n_pairs;
  for (std::size_t k = 0; k < job.n_pairs; ++k, b += 16) {
    I w[kR];
    CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) w[v] = iload(b + v * kL);
    CYB_UNROLL for (int r = 0; r < R; ++r) {
      const I x = iset(a[static_cast<std::size_t>(r) * job.n_pairs + k]);
      CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) {
        acc[r][v] = iadd(acc[r][v], imadd(x, w[v]));
      }
    }
  }
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    std::int32_t* y = job.y + (row + static_cast<std::size_t>(r)) * job.y_row + at;
    if (n == 16) {
      CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) istore(acc[r][v], y + v * kL);
    } else {
      alignas(64) std::int32_t part[16];
      CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) istore(acc[r][v], part + v * kL);
      for (std::size_t i = 0; i < n; ++i) y[i] = part[i];
    }
  }
}

HWY_NOINLINE void pairs(const PairsJob& job) noexcept {
  for (std::size_t at = 0; at < job.n_outputs; at += 16) {
    const std::size_t n = job.n_outputs - at < 16 ? job.n_outputs - at : 16;
    std::size_t row = 0;
    for (; row + 6 <= job.rows; row += 6) tile<6>(job, row, at, n);
    for (; row + 3 <= job.rows; row += 3) tile<3>(job, row, at, n);
    for (; row < job.rows; ++row) tile<1>(job, row, at, n);
  }
}

HWY_NOINLINE void quantise(const float* x, std::size_t n, float scale,
                           const std::int32_t (&zero_low_high)[3], std::uint8_t* y) noexcept {
  const F s = vset(scale), zero = vset(static_cast<float>(zero_low_high[0]));
  const F low = vset(static_cast<float>(zero_low_high[1])),
          high = vset(static_cast<float>(zero_low_high[2]));
  // Beyond these every zero saturates; rounding needs |q| < 2^22.
  const F least = vset(-1024.0f), most = vset(1024.0f);
  for (std::size_t i = 0; i < n; i += kL) {
    const std::size_t here = n - i < kL ? n - i : kL;
    alignas(64) float part[kL] = {};
    if (here < kL) std::memcpy(part, x + i, here * sizeof(float));
    F q = vdiv(vload(here < kL ? part : x + i), s);
    q = isel_lt(iset(0x7F800000), iand(vbits(q), iset(0x7FFFFFFF)), vzero(), q);  // NaN
    q = vsel_lt(q, least, least, vsel_lt(most, q, most, q));
    q = vadd(vsub(vadd(q, vset(kRoundMagic)), vset(kRoundMagic)), zero);
    q = vsel_lt(q, low, low, vsel_lt(high, q, high, q));
    alignas(64) std::int32_t words[kL];
    istore(isub(vbits(vadd(q, vset(kRoundMagic))), iset(kRoundMagicBits)), words);
    for (std::size_t k = 0; k < here; ++k) y[i + k] = static_cast<std::uint8_t>(words[k]);
  }
}

template <bool kSigned>
HWY_NOINLINE void dequantise(const std::uint8_t* x, std::size_t n, std::int32_t zero, float scale,
                             float* y) noexcept {
  const auto load = [](const std::uint8_t* p) { return kSigned ? load_s8(p) : load_u8(p); };
  std::size_t i = 0;
  for (; i + kL <= n; i += kL)
    vstore(vmul(icvt(isub(load(x + i), iset(zero))), vset(scale)), y + i);
  if (i == n) return;
  std::uint8_t part[kL] = {};
  std::memcpy(part, x + i, n - i);
  alignas(64) float values[kL];
  vstore(vmul(icvt(isub(load(part), iset(zero))), vset(scale)), values);
  std::memcpy(y + i, values, (n - i) * sizeof(float));
}

HWY_NOINLINE bool range(const float* x, std::size_t n, float (&low_high)[2]) noexcept {
  F low = vzero(), high = vzero(), all = vzero();
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) {
    const F v = vload(x + i);
    low = vsel_lt(v, low, v, low);
    high = vsel_lt(high, v, v, high);
    all = vadd(all, vsub(v, v));
  }
  alignas(64) float lows[kL], highs[kL], sums[kL];
  vstore(low, lows);
  vstore(high, highs);
  vstore(all, sums);
  float least = 0.0f, most = 0.0f, sum = 0.0f;
  for (std::size_t k = 0; k < kL; ++k) {
    least = lows[k] < least ? lows[k] : least;
    most = highs[k] > most ? highs[k] : most;
    sum += sums[k];
  }
  for (; i < n; ++i) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
    sum += x[i] - x[i];
  }
  low_high[0] = least;
  low_high[1] = most;
  return sum == 0.0f;
}

}  // namespace

void fill_integers(KernelTable& table) {
  table.integers.pairs = pairs;
  table.integers.quantise = quantise;
  table.integers.dequantise[0] = dequantise<false>;
  table.integers.dequantise[1] = dequantise<true>;
  table.integers.range = range;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
