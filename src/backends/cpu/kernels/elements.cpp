// Functions of single elements and of rows, for graphs.
#include "backends/cpu/kernels/elements.hpp"

#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elements.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

CYB_FN F vsqrt(F x) {
#if CYB_SIMD
  return hn::Sqrt(x);
#else
  F y;
  for (std::size_t i = 0; i < kL; ++i) y.v[i] = __builtin_sqrtf(x.v[i]);
  return y;
#endif
}

/// The last n < kL values of a row, zeros behind them.
CYB_FN F load_some(const float* x, std::size_t n) {
  alignas(64) float rest[16] = {};
  std::memcpy(rest, x, n * sizeof(float));
  return vload(rest);
}
CYB_FN void store_some(F v, std::size_t n, float* y) {
  alignas(64) float rest[16];
  vstore(v, rest);
  std::memcpy(y, rest, n * sizeof(float));
}

template <ElementOp kOp>
CYB_FN F apply(F x, F a, F b) {
  if constexpr (kOp == ElementOp::kErf) return verf(x);
  if constexpr (kOp == ElementOp::kExp) return vexp(x);
  if constexpr (kOp == ElementOp::kSqrt) return vsqrt(x);
  if constexpr (kOp == ElementOp::kReciprocal) return vdiv(vset(1.0f), x);
  if constexpr (kOp == ElementOp::kSquare) return vmul(x, x);
  if constexpr (kOp == ElementOp::kLeaky) return vsel_lt(x, vzero(), vmul(a, x), x);
  if constexpr (kOp == ElementOp::kDivideBy) return vdiv(x, a);
  if constexpr (kOp == ElementOp::kDivided) return vdiv(a, x);
  if constexpr (kOp == ElementOp::kSin) return vsin(x);
  if constexpr (kOp == ElementOp::kClip) {
    const F low = vsel_lt(x, a, a, x);
    return vsel_lt(b, low, b, low);
  }
  if constexpr (kOp == ElementOp::kHardSigmoid) {
    const F line = vadd(vmul(a, x), b);
    const F low = vsel_lt(line, vzero(), vzero(), line);
    return vsel_lt(vset(1.0f), low, vset(1.0f), low);
  }
  if constexpr (kOp == ElementOp::kHardSwish) {
    return vmul(x, apply<ElementOp::kHardSigmoid>(x, vset(0.166666672f), vset(0.5f)));
  }
}

template <ElementOp kOp>
HWY_NOINLINE void map(const float* x, float a, float b, std::size_t n, float* y) noexcept {
  const F va = vset(a), vb = vset(b);
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(apply<kOp>(vload(x + i), va, vb), y + i);
  if (i != n) store_some(apply<kOp>(load_some(x + i, n - i), va, vb), n - i, y + i);
}

HWY_NOINLINE void div(const float* a, const float* b, std::size_t n, float* y) noexcept {
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(vdiv(vload(a + i), vload(b + i)), y + i);
  if (i != n) store_some(vdiv(load_some(a + i, n - i), load_some(b + i, n - i)), n - i, y + i);
}

HWY_NOINLINE void normalise(const float* x, const float (&c)[4], std::size_t n, float* y) noexcept {
  const F mean = vset(c[0]), deviation = vset(c[1]), gain = vset(c[2]), bias = vset(c[3]);
  const auto of = [&](F v) { return vadd(vmul(vdiv(vsub(v, mean), deviation), gain), bias); };
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(of(vload(x + i)), y + i);
  if (i != n) store_some(of(load_some(x + i, n - i)), n - i, y + i);
}

/// Sum of f(x) in 16 chains.
template <class Of>
CYB_FN float row_sum(const float* x, std::size_t n, const Of& of) {
  F acc[kR];
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[h] = vzero();
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[h] =
        vadd(acc[h], of(vload(x + i + h * kL)));
  }
  alignas(64) float lanes[16];
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) vstore(acc[h], lanes + h * kL);
  if (i != n) {
    alignas(64) float rest[16] = {};
    std::memcpy(rest, x + i, (n - i) * sizeof(float));
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) vstore(of(vload(rest + h * kL)), rest + h * kL);
    for (std::size_t k = 0; k < n - i; ++k) lanes[k] += rest[k];
  }
  return tree_sum(lanes);
}

HWY_NOINLINE float sum(const float* x, std::size_t n) noexcept {
  return row_sum(x, n, [](F v) { return v; });
}

HWY_NOINLINE void layer_norm(const float* x, const float* gain, const float* bias, std::size_t n,
                             float eps, float* y) noexcept {
  const float mean = sum(x, n) / static_cast<float>(n);
  const float variance = row_sum(x, n,
                                 [m = vset(mean)](F v) {
                                   const F d = vsub(v, m);
                                   return vmul(d, d);
                                 }) /
                         static_cast<float>(n);
  const F m = vset(mean), r = vset(__builtin_sqrtf(variance + eps));
  const auto put = [&](F v, F g, F b) {
    F out = vdiv(vsub(v, m), r);
    if (gain != nullptr) out = vmul(out, g);
    return bias != nullptr ? vadd(out, b) : out;
  };
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) {
    vstore(put(vload(x + i), gain != nullptr ? vload(gain + i) : vzero(),
               bias != nullptr ? vload(bias + i) : vzero()),
           y + i);
  }
  if (i == n) return;
  store_some(put(load_some(x + i, n - i), gain != nullptr ? load_some(gain + i, n - i) : vzero(),
                 bias != nullptr ? load_some(bias + i, n - i) : vzero()),
             n - i, y + i);
}

/// NaN is passed over, as in the reference: it comes back through the sum.
CYB_FN float row_max(const float* x, std::size_t n) {
  const float lowest = -__builtin_inff();
  F best = vset(lowest);
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) {
    const F v = vload(x + i);
    best = vsel_lt(best, v, v, best);
  }
  alignas(64) float lanes[16];
  vstore(best, lanes);
  float largest = lowest;
  for (std::size_t k = 0; k < kL; ++k) largest = largest < lanes[k] ? lanes[k] : largest;
  for (; i < n; ++i) largest = largest < x[i] ? x[i] : largest;
  return largest;
}

HWY_NOINLINE bool softmax(const float* x, std::size_t n, float* y) noexcept {
  const float largest = row_max(x, n);
  if (largest == -__builtin_inff()) {
    bool lowest = true;
    for (std::size_t i = 0; i < n; ++i) lowest = lowest && x[i] == largest;
    if (lowest) return false;
  }
  const F m = vset(largest);
  std::size_t i = 0;
  for (; i + kL <= n; i += kL) vstore(vexp(vsub(vload(x + i), m)), y + i);
  if (i != n) store_some(vexp(vsub(load_some(x + i, n - i), m)), n - i, y + i);
  map<ElementOp::kDivideBy>(y, sum(y, n), 0.0f, n, y);
  return true;
}

template <ElementOp kOp>
CYB_FN void fill_map(ElementKernels& table) {
  table.map[static_cast<std::size_t>(kOp)] = map<kOp>;
}

}  // namespace

void fill_elements(KernelTable& kernels) {
  ElementKernels& table = kernels.elements;
  fill_map<ElementOp::kErf>(table);
  fill_map<ElementOp::kExp>(table);
  fill_map<ElementOp::kSqrt>(table);
  fill_map<ElementOp::kReciprocal>(table);
  fill_map<ElementOp::kSquare>(table);
  fill_map<ElementOp::kClip>(table);
  fill_map<ElementOp::kLeaky>(table);
  fill_map<ElementOp::kHardSigmoid>(table);
  fill_map<ElementOp::kHardSwish>(table);
  fill_map<ElementOp::kDivideBy>(table);
  fill_map<ElementOp::kDivided>(table);
  fill_map<ElementOp::kSin>(table);
  table.div = div;
  table.normalise = normalise;
  table.layer_norm = layer_norm;
  table.softmax = softmax;
  table.sum = sum;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
