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

constexpr int kMaxBlocks = CYB_WIDE ? 2 : 1;  // of 16 outputs that a tile takes

/// n values of a row of outputs that may be a part of a block.
struct Part {
  std::size_t n;
  CYB_FN_MEMBER F load(const float* y, std::size_t v) const {
    alignas(64) float part[16] = {};
    for (std::size_t i = v * kL; i < n; ++i) part[i] = y[i];
    return vload(part + v * kL);
  }
  CYB_FN_MEMBER void store(F x, float* y, std::size_t v) const {
    alignas(64) float part[16];
    vstore(x, part + v * kL);
    for (std::size_t i = v * kL; i < n && i < (v + 1) * kL; ++i) y[i] = part[i];
  }
};
struct Whole {
  CYB_FN_MEMBER F load(const float* y, std::size_t v) const { return vload(y + v * kL); }
  CYB_FN_MEMBER void store(F x, float* y, std::size_t v) const { vstore(x, y + v * kL); }
};

#define CYB_EACH_SUM \
  CYB_UNROLL for (int r = 0; r < R; ++r) CYB_UNROLL for (std::size_t v = 0; v < NB * kR; ++v)

/// The sums of outputs from `at` on go to y, finished where they are whole.
template <int R, int NB, class Row>
CYB_FN void put_rows(const DirectJob& job, F (&acc)[R][NB * static_cast<int>(kR)], std::size_t at,
                     float* y, const Row& row) {
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

template <int R, int NB>
CYB_FN void put(const DirectJob& job, F (&acc)[R][NB * static_cast<int>(kR)], std::size_t at,
                float* y) {
  if constexpr (NB == 1) {
    if (job.n_outputs - at < 16) return put_rows<R, NB>(job, acc, at, y, Part{job.n_outputs - at});
  }
  put_rows<R, NB>(job, acc, at, y, Whole{});
}

template <int R, int NB>
CYB_FN void tile(const DirectJob& job, const DirectTile& t, std::size_t at, float* y) {
  constexpr int kV = NB * static_cast<int>(kR);
  F acc[R][kV];
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    CYB_UNROLL for (int v = 0; v < kV; ++v) acc[r][v] = vzero();
  }
  const float* w = job.w + at / 16 * job.w_block;
  const auto length = static_cast<std::ptrdiff_t>(job.n_channels * t.merge);
  const float* const* rows = t.rows + job.first_tap / t.merge * kTilePixels;
  for (std::size_t tap = 0; tap < job.n_taps; tap += t.merge, rows += kTilePixels) {
    const float* x[R];
    CYB_UNROLL for (int r = 0; r < R; ++r) x[r] = rows[r] + job.first_channel + length;
    for (std::ptrdiff_t c = -length; c != 0; ++c) {
      F ws[kV];
      CYB_UNROLL for (int v = 0; v < kV; ++v) {
        ws[v] = vload(w + static_cast<std::size_t>(v) / kR * job.w_block +
                      static_cast<std::size_t>(v) % kR * kL);
      }
      CYB_UNROLL for (int r = 0; r < R; ++r) {
        const F pixel = vset(x[r][c]);
        CYB_UNROLL for (int v = 0; v < kV; ++v) acc[r][v] = vfma(pixel, ws[v], acc[r][v]);
      }
      w += 16;
    }
  }
  put<R, NB>(job, acc, at, y);
}

template <int NB>
HWY_NOINLINE void block(const DirectJob& job, std::size_t at) {
  float* y = job.y + at;
  for (std::size_t i = 0; i < job.n_tiles; ++i) {
    const DirectTile& t = job.tiles[i];
    switch (t.n) {
      case 1:
        tile<1, NB>(job, t, at, y);
        break;
      case 2:
        tile<2, NB>(job, t, at, y);
        break;
      case 3:
        tile<3, NB>(job, t, at, y);
        break;
      case 4:
        tile<4, NB>(job, t, at, y);
        break;
      case 5:
        tile<5, NB>(job, t, at, y);
        break;
      default:
        tile<6, NB>(job, t, at, y);
    }
    y += t.n * job.y_pixel;
  }
}

HWY_NOINLINE void direct(const DirectJob& job) noexcept {
  std::size_t at = 0;
  for (; job.n_outputs - at >= 16 * kMaxBlocks; at += 16 * kMaxBlocks) block<kMaxBlocks>(job, at);
  for (; at < job.n_outputs; at += 16) block<1>(job, at);
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

/// Channels [at, at + 16) of R pixels, n < 16 of them where kPart.
template <int R, bool kPart, class Op>
CYB_FN void channels(const DirectJob& job, const DirectTile& t, std::size_t at, float* y,
                     const Op& op) {
  F acc[R][kR];
  CYB_UNROLL for (int r = 0; r < R; ++r) {
    CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) acc[r][v] = op.start();
  }
  const float* const* rows = t.rows;
  const std::size_t n = kPart ? job.n_outputs - at : 16;
  for (std::size_t tap = 0; tap < job.n_taps; ++tap, rows += kTilePixels) {
    F ws[kR];
    CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) {
      ws[v] = op.weight(job.w + tap * job.w_block + at + v * kL);
    }
    CYB_UNROLL for (int r = 0; r < R; ++r) {
      const float* x = rows[r] + job.first_channel + at;
      alignas(64) float part[16];
      if constexpr (kPart) {
        for (std::size_t i = 0; i < 16; ++i) part[i] = i < n ? x[i] : 0.0f;
        x = part;
      }
      CYB_UNROLL for (std::size_t v = 0; v < kR; ++v) {
        acc[r][v] = op.join(acc[r][v], vload(x + v * kL), ws[v]);
      }
    }
  }
  put<R, 1>(job, acc, at, y);
}

template <int R, class Op>
HWY_NOINLINE void pixels(const DirectJob& job, const DirectTile& t, float* y, const Op& op) {
  std::size_t at = 0;
  for (; at + 16 <= job.n_outputs; at += 16) channels<R, false>(job, t, at, y + at, op);
  if (at < job.n_outputs) channels<R, true>(job, t, at, y + at, op);
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
