// f32 products of tiles: C = A B with B in blocks of 16 columns. Every element of C is a chain of
// fused multiply-adds per 256 values of k, the chains added in order: the bits depend on nothing
// but its row of A and its column of B. Depthwise rows: one chain over the taps.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/tile.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr std::size_t kChain = 256;                    // values of k in one chain
constexpr std::size_t kManyRows = 192;                 // rows of A whose slice no longer stays near
constexpr std::size_t kWideBlocks = CYB_WIDE ? 2 : 1;  // blocks of 16 columns that 4 to 6 rows take

/// The part of a job that one chain covers.
struct Slice {
  std::size_t k0, n_k;
  bool first, last;
};

template <int R, int NB, bool kPacked>
CYB_FN void tile(const TileJob& job, const Slice& s, std::size_t row, std::size_t block) {
  constexpr int kV = NB * static_cast<int>(kR);
  F acc[R][kV];
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    CYB_UNROLL for (int v = 0; v < kV; ++v) acc[r][v] = vzero();
  }
  const float* a = job.a + row / kTileRows * job.a_panel + s.k0 * (kPacked ? kTileRows : 1);
  const float* b = job.b + block * job.b_block + s.k0 * 16;
  for (std::size_t k = 0; k < s.n_k; ++k) {
    F w[kV];
    CYB_UNROLL for (int v = 0; v < kV; ++v) {
      w[v] = vload(b + static_cast<std::size_t>(v) / kR * job.b_block +
                   static_cast<std::size_t>(v) % kR * kL);
    }
    CYB_UNROLL for (int r = 0; r < R; ++r) {
      const F x = vset(a[static_cast<std::size_t>(r) * (kPacked ? 1 : job.a_row)]);
      CYB_UNROLL for (int v = 0; v < kV; ++v) acc[r][v] = vfma(x, w[v], acc[r][v]);
    }
    a += kPacked ? kTileRows : 1;
    b += 16;
  }
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    const std::size_t at = row + static_cast<std::size_t>(r);
    float* c = job.c + at * job.c_row + block * 16;
    CYB_UNROLL for (int v = 0; v < kV; ++v) {
      const std::size_t column = static_cast<std::size_t>(v) * kL;
      F y = acc[r][v];
      if (!s.first) y = vadd(vload(c + column), y);
      if (s.last && job.row_bias != nullptr) y = vadd(y, vset(job.row_bias[at]));
      vstore(y, c + column);
    }
  }
}

template <int R, int NB>
CYB_FN void tile_of(const TileJob& job, const Slice& s, std::size_t row, std::size_t block) {
  if (job.packed) {
    tile<R, NB, true>(job, s, row, block);
  } else {
    tile<R, NB, false>(job, s, row, block);
  }
}

template <int NB>
HWY_NOINLINE void rows_of(const TileJob& job, const Slice& s, std::size_t row, std::size_t block) {
  switch (job.rows - row) {
    case 1:
      return tile_of<1, NB>(job, s, row, block);
    case 2:
      return tile_of<2, NB>(job, s, row, block);
    case 3:
      return tile_of<3, NB>(job, s, row, block);
    case 4:
      return tile_of<4, NB>(job, s, row, block);
    case 5:
      return tile_of<5, NB>(job, s, row, block);
    default:
      return tile_of<6, NB>(job, s, row, block);
  }
}

CYB_FN std::size_t step_of(const TileJob& job, std::size_t block) {
  return job.n_blocks - block >= kWideBlocks ? kWideBlocks : 1;
}
CYB_FN void blocks_of(const TileJob& job, const Slice& s, std::size_t row, std::size_t block) {
  if (step_of(job, block) == kWideBlocks) {
    rows_of<static_cast<int>(kWideBlocks)>(job, s, row, block);
  } else {
    rows_of<1>(job, s, row, block);
  }
}

HWY_NOINLINE void product(const TileJob& job) noexcept {
  for (std::size_t k = 0; k < job.k; k += kChain) {
    const std::size_t n_k = job.k - k < kChain ? job.k - k : kChain;
    const Slice s{k, n_k, k == 0, k + n_k == job.k};
    if (job.rows > kManyRows) {
      for (std::size_t row = 0; row < job.rows; row += kTileRows) {
        for (std::size_t b = 0; b < job.n_blocks; b += step_of(job, b)) blocks_of(job, s, row, b);
      }
    } else {
      for (std::size_t b = 0; b < job.n_blocks; b += step_of(job, b)) {
        for (std::size_t row = 0; row < job.rows; row += kTileRows) blocks_of(job, s, row, b);
      }
    }
  }
}

/// y[i] = bias + sum over taps of w[t] * x[t][i * stride], taps in order.
template <int NV>
CYB_FN void taps_of(const TapsJob& job, std::size_t i) {
  F acc[NV];
  CYB_UNROLL for (int v = 0; v < NV; ++v) acc[v] = vzero();
  for (std::size_t t = 0; t < job.n_taps; ++t) {
    const F w = vset(job.w[t]);
    CYB_UNROLL for (int v = 0; v < NV; ++v) {
      acc[v] = vfma(vload(job.x[t] + i + static_cast<std::size_t>(v) * kL), w, acc[v]);
    }
  }
  CYB_UNROLL for (int v = 0; v < NV; ++v) {
    vstore(vadd(acc[v], vset(job.bias)), job.y + i + static_cast<std::size_t>(v) * kL);
  }
}

HWY_NOINLINE void taps(const TapsJob& job) noexcept {
  std::size_t i = 0;
  if (job.stride == 1) {
    for (; i + 4 * kL <= job.n; i += 4 * kL) taps_of<4>(job, i);
    for (; i + kL <= job.n; i += kL) taps_of<1>(job, i);
  }
  for (; i < job.n; ++i) {
    float acc = 0.0f;
    for (std::size_t t = 0; t < job.n_taps; ++t)
      acc = __builtin_fmaf(job.x[t][i * job.stride], job.w[t], acc);
    job.y[i] = acc + job.bias;
  }
}

}  // namespace

void fill_tile(KernelTable& table) {
  table.tile = product;
  table.taps = taps;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
