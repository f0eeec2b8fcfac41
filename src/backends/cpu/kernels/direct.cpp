// Convolutions over channels-last pixels, without patches: tiles of 6 pixels and 16 outputs whose
// sums stay in registers while pointers walk the taps. An output's bits depend on its own values
// alone, not on its tile.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/direct.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/vec-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr int kV = static_cast<int>(kR);  // vectors of a block of 16 outputs

/// Vectors of a row of which n values are there.
struct Part {
  std::size_t n;
  CYB_FN_MEMBER std::size_t values(std::size_t v) const {
    const std::size_t first = v * kL;
    return n <= first ? 0 : n - first < kL ? n - first : kL;
  }
  CYB_FN_MEMBER F load(const float* y, std::size_t v) const {
    alignas(64) float part[kL] = {};
    for (std::size_t i = 0; i < values(v); ++i) part[i] = y[v * kL + i];
    return vload(part);
  }
  CYB_FN_MEMBER void store(F x, float* y, std::size_t v) const {
    alignas(64) float part[kL];
    vstore(x, part);
    for (std::size_t i = 0; i < values(v); ++i) y[v * kL + i] = part[i];
  }
};
struct Whole {
  CYB_FN_MEMBER F load(const float* y, std::size_t v) const { return vload(y + v * kL); }
  CYB_FN_MEMBER void store(F x, float* y, std::size_t v) const { vstore(x, y + v * kL); }
};

#define CYB_EACH_SUM \
  CYB_UNROLL for (int r = 0; r < R; ++r) CYB_UNROLL for (std::size_t v = 0; v < V; ++v)

/// The sums of V vectors of outputs from `at` on go to y, finished where they are whole.
template <int R, int V, class Row>
CYB_FN void put_rows(const DirectJob& job, F (&acc)[R][V], std::size_t at, float* y,
                     const Row& row) {
  const auto to = [&](int r) { return y + static_cast<std::size_t>(r) * job.y_pixel; };
  if (!job.first) {
    CYB_EACH_SUM acc[r][v] = vadd(row.load(to(r), v), acc[r][v]);
  }
  if (job.last && job.scale != nullptr) {
    CYB_EACH_SUM acc[r][v] =
        vfma(acc[r][v], vload(job.scale + at + v * kL), vload(job.bias + at + v * kL));
  } else if (job.last && job.bias != nullptr) {
    CYB_EACH_SUM acc[r][v] = vadd(acc[r][v], vload(job.bias + at + v * kL));
  }
  if (job.last && job.relu) {
    CYB_EACH_SUM acc[r][v] = vsel_lt(acc[r][v], vzero(), vzero(), acc[r][v]);
  }
  CYB_EACH_SUM row.store(acc[r][v], to(r), v);
}

template <int R, int V>
CYB_FN void put(const DirectJob& job, F (&acc)[R][V], std::size_t at, float* y) {
  if (const std::size_t n = job.n_outputs - at; n < V * kL)
    return put_rows<R, V>(job, acc, at, y, Part{n});
  put_rows<R, V>(job, acc, at, y, Whole{});
}

/// The sums of R pixels from `first` of the tile on and V vectors of outputs.
template <int R, int V>
CYB_FN void tile(const DirectJob& job, const DirectTile& t, std::size_t first, std::size_t at,
                 float* y) {
  F acc[R][V];
  CYB_EACH_SUM acc[r][v] = vzero();
  const float* w = job.w + at / 16 * job.w_block;
  const std::size_t merge = t.inside ? job.merge : 1;
  const auto length = static_cast<std::ptrdiff_t>(job.n_channels * merge);
  const float* const* rows = t.rows + first + (t.inside ? 0 : job.first_tap * kTilePixels);
  for (std::size_t tap = 0; tap < job.n_taps; tap += merge) {
    const float* x[R];
    const std::ptrdiff_t offset = t.inside ? job.offsets[job.first_tap + tap] : 0;
    CYB_UNROLL for (int r = 0; r < R; ++r) {
      x[r] = rows[r] + (offset + static_cast<std::ptrdiff_t>(job.first_channel) + length);
    }
    for (std::ptrdiff_t c = -length; c != 0; ++c) {
      F ws[V];
      CYB_UNROLL for (std::size_t v = 0; v < V; ++v) {
        ws[v] = vload(w + v / kR * job.w_block + v % kR * kL);
      }
      CYB_UNROLL for (int r = 0; r < R; ++r) {
        const F pixel = vset(x[r][c]);
        CYB_UNROLL for (std::size_t v = 0; v < V; ++v) acc[r][v] = vfma(pixel, ws[v], acc[r][v]);
      }
      w += 16;
    }
    rows += t.inside ? 0 : kTilePixels;
  }
  put<R, V>(job, acc, at, y + first * job.y_pixel);
}

template <int V>
HWY_NOINLINE void block(const DirectJob& job, std::size_t at) {
  float* y = job.y + at;
  for (std::size_t i = 0; i < job.n_tiles; ++i) {
    const DirectTile& t = job.tiles[i];
    switch (t.n) {
      case 1:
        tile<1, V>(job, t, 0, at, y);
        break;
      case 2:
        tile<2, V>(job, t, 0, at, y);
        break;
      case 3:
        tile<3, V>(job, t, 0, at, y);
        break;
      case 4:
        tile<4, V>(job, t, 0, at, y);
        break;
      case 5:
        tile<5, V>(job, t, 0, at, y);
        break;
      default:
        tile<6, V>(job, t, 0, at, y);
    }
    y += t.n * job.y_pixel;
  }
}

#if CYB_SIMD && !CYB_WIDE
/// 24 outputs: half a tile at a time, as the sums of a whole one do not fit the registers.
HWY_NOINLINE void block_of_three(const DirectJob& job, std::size_t at) {
  float* y = job.y + at;
  for (std::size_t i = 0; i < job.n_tiles; ++i) {
    const DirectTile& t = job.tiles[i];
    std::size_t r = 0;
    for (; r + 3 <= t.n; r += 3) tile<3, 3>(job, t, r, at, y);
    if (t.n - r == 2) tile<2, 3>(job, t, r, at, y);
    if (t.n - r == 1) tile<1, 3>(job, t, r, at, y);
    y += t.n * job.y_pixel;
  }
}
#endif

HWY_NOINLINE void direct(const DirectJob& job) noexcept {
  std::size_t at = 0;
#if CYB_WIDE
  for (; job.n_outputs - at >= 32; at += 32) block<2>(job, at);
#elif CYB_SIMD
  for (; job.n_outputs - at > 24; at += 16) block<2>(job, at);
  if (job.n_outputs - at > 16) return block_of_three(job, at);
  if (job.n_outputs - at <= 8) return block<1>(job, at);
#endif
  for (; at < job.n_outputs; at += 16) block<kV>(job, at);
}

// --- a channel at a time

struct Weighted {
  CYB_FN_MEMBER F start() const { return vzero(); }
  CYB_FN_MEMBER F weight(const float* w) const { return vload(w); }
  CYB_FN_MEMBER F join(F acc, F x, F w) const { return vfma(x, w, acc); }
};

struct Largest {
  CYB_FN_MEMBER F start() const { return vset(-__builtin_inff()); }
  CYB_FN_MEMBER F weight(const float*) const { return vzero(); }
  CYB_FN_MEMBER F join(F best, F x, F) const {
    const F larger = vsel_lt(best, x, x, best);
    return isel_lt(iset(0x7F800000), iand(vbits(x), iset(0x7FFFFFFF)), x, larger);
  }
};

/// The vectors of channels [at, at + 16) of a pixel, of which there may be fewer.
struct WholePixel {
  CYB_FN_MEMBER F load(const float* x, std::size_t v) const { return vload(x + v * kL); }
};
struct PartPixel {
  std::size_t n;
  CYB_FN_MEMBER F load(const float* x, std::size_t v) const { return Part{n}.load(x, v); }
};

template <int R, bool kInside, class Op, class Pixel>
CYB_FN void channels(const DirectJob& job, const DirectTile& t, std::size_t at, float* y,
                     const Op& op, const Pixel& pixel) {
  constexpr int V = kV;
  F acc[R][V];
  CYB_EACH_SUM acc[r][v] = op.start();
  const float* const* rows = t.rows;
  const float* x[R];
  CYB_UNROLL for (int r = 0; r < R; ++r) x[r] = rows[r] + job.first_channel + at;
  const float* w = job.w + at;
  for (std::size_t tap = 0; tap < job.n_taps; ++tap, w += job.w_block) {
    F ws[V];
    CYB_UNROLL for (std::size_t v = 0; v < V; ++v) ws[v] = op.weight(w + v * kL);
    const std::ptrdiff_t offset = kInside ? job.offsets[tap] : 0;
    CYB_EACH_SUM acc[r][v] = op.join(acc[r][v], pixel.load(x[r] + offset, v), ws[v]);
    if constexpr (!kInside) {
      if (tap + 1 == job.n_taps) break;
      rows += kTilePixels;
      CYB_UNROLL for (int r = 0; r < R; ++r) x[r] = rows[r] + job.first_channel + at;
    }
  }
  put<R, V>(job, acc, at, y);
}

template <int R, class Op>
HWY_NOINLINE void pixels(const DirectJob& job, const DirectTile& t, float* y, const Op& op) {
  std::size_t at = 0;
  for (; at + 16 <= job.n_outputs; at += 16) {
    t.inside ? channels<R, true>(job, t, at, y + at, op, WholePixel{})
             : channels<R, false>(job, t, at, y + at, op, WholePixel{});
  }
  if (at == job.n_outputs) return;
  const PartPixel part{job.n_outputs - at};
  t.inside ? channels<R, true>(job, t, at, y + at, op, part)
           : channels<R, false>(job, t, at, y + at, op, part);
}

template <class Op>
CYB_FN void each_tile(const DirectJob& job, const Op& op) {
  float* y = job.y;
  for (std::size_t i = 0; i < job.n_tiles; ++i) {
    const DirectTile& t = job.tiles[i];
    switch (t.n) {
      case 1:
        pixels<1>(job, t, y, op);
        break;
      case 2:
        pixels<2>(job, t, y, op);
        break;
      case 3:
        pixels<3>(job, t, y, op);
        break;
      case 4:
        pixels<4>(job, t, y, op);
        break;
      case 5:
        pixels<5>(job, t, y, op);
        break;
      default:
        pixels<6>(job, t, y, op);
    }
    y += t.n * job.y_pixel;
  }
}

HWY_NOINLINE void depthwise(const DirectJob& job) noexcept {
  each_tile(job, Weighted{});
}
HWY_NOINLINE void max_taps(const DirectJob& job) noexcept {
  each_tile(job, Largest{});
}

}  // namespace

void fill_direct(KernelTable& table) {
  table.direct = direct;
  table.depthwise = depthwise;
  table.max_taps = max_taps;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
