// Winograd's F(2x2, 3x3) over channels-last pixels (A. Lavin and S. Gray, Fast Algorithms for
// Convolutional Neural Networks): the transforms before and after the products.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/winograd.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

/// v = B^T d B for all channels.
HWY_NOINLINE void winograd_in(const float* const* pixels, std::size_t n_channels, float* v,
                              std::size_t v_position) noexcept {
  for (std::size_t c = 0; c < n_channels; c += kL) {
    F t[4][4];
    CYB_UNROLL for (std::size_t j = 0; j < 4; ++j) {
      const F d0 = vload(pixels[j] + c), d1 = vload(pixels[4 + j] + c);
      const F d2 = vload(pixels[8 + j] + c), d3 = vload(pixels[12 + j] + c);
      t[0][j] = vsub(d0, d2);
      t[1][j] = vadd(d1, d2);
      t[2][j] = vsub(d2, d1);
      t[3][j] = vsub(d1, d3);
    }
    float* to = v + c;
    CYB_UNROLL for (std::size_t i = 0; i < 4; ++i) {
      vstore(vsub(t[i][0], t[i][2]), to + (4 * i) * v_position);
      vstore(vadd(t[i][1], t[i][2]), to + (4 * i + 1) * v_position);
      vstore(vsub(t[i][2], t[i][1]), to + (4 * i + 2) * v_position);
      vstore(vsub(t[i][1], t[i][3]), to + (4 * i + 3) * v_position);
    }
  }
}

/// The last n < kL values of a row.
CYB_FN F load_some(const float* x, std::size_t n) {
  alignas(64) float rest[kL] = {};
  for (std::size_t i = 0; i < n; ++i) rest[i] = x[i];
  return vload(rest);
}

struct Windows {
  const WinogradOut& job;
  F all;  // NaN where an output is not finite

  CYB_FN_MEMBER void put(F y, std::size_t pixel, std::size_t at, std::size_t n) {
    float* to = job.y[pixel];
    if (to == nullptr) return;
    all = vadd(all, vsub(y, y));
    if (job.scale != nullptr) {
      y = vfma(y, vload(job.scale + at), vload(job.bias + at));
    } else if (job.bias != nullptr) {
      y = vadd(y, vload(job.bias + at));
    }
    if (job.relu) y = vsel_lt(y, vzero(), vzero(), y);
    if (n == kL) {
      vstore(y, to + at);
      return;
    }
    alignas(64) float rest[kL];
    vstore(y, rest);
    for (std::size_t i = 0; i < n; ++i) to[at + i] = rest[i];
  }
  CYB_FN_MEMBER void outputs(std::size_t at, std::size_t n) {
    F t[2][4];
    const auto product = [&](std::size_t position) {
      const float* m = job.m + position * job.m_position + at;
      return n == kL ? vload(m) : load_some(m, n);
    };
    CYB_UNROLL for (std::size_t j = 0; j < 4; ++j) {
      const F m1 = product(4 + j), m2 = product(8 + j);
      t[0][j] = vadd(vadd(product(j), m1), m2);
      t[1][j] = vsub(vsub(m1, m2), product(12 + j));
    }
    CYB_UNROLL for (std::size_t i = 0; i < 2; ++i) {
      put(vadd(vadd(t[i][0], t[i][1]), t[i][2]), 2 * i, at, n);
      put(vsub(vsub(t[i][1], t[i][2]), t[i][3]), 2 * i + 1, at, n);
    }
  }
};

HWY_NOINLINE bool winograd_out(const WinogradOut& job) noexcept {
  Windows windows{job, vzero()};
  std::size_t at = 0;
  for (; at + kL <= job.n_outputs; at += kL) windows.outputs(at, kL);
  if (at < job.n_outputs) windows.outputs(at, job.n_outputs - at);
  alignas(64) float lanes[kL];
  vstore(windows.all, lanes);
  bool finite = true;
  for (std::size_t i = 0; i < kL; ++i) finite = finite && lanes[i] == 0.0f;
  return finite;
}

}  // namespace

void fill_winograd(KernelTable& table) {
  table.winograd_in = winograd_in;
  table.winograd_out = winograd_out;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
