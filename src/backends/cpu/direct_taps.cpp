// Cutting sums into chains and finding the taps of tiles.
#include "backends/cpu/direct_taps.hpp"

#include <algorithm>
#include <array>

namespace cyb::cpu {
namespace {

constexpr std::size_t kChain = 256;  // products of one chain, about: its weights stay in L1

std::vector<DirectSlice> cut(std::size_t taps, std::size_t row, std::size_t channels) {
  std::vector<DirectSlice> slices;
  if (channels > kChain) {
    const std::size_t n = (channels + kChain - 1) / kChain;
    const std::size_t each = ((channels + n - 1) / n + 7) / 8 * 8;
    for (std::size_t t = 0; t < taps; ++t) {
      for (std::size_t c = 0; c < channels; c += each)
        slices.push_back({t, 1, c, std::min(each, channels - c)});
    }
    return slices;
  }
  const bool rows = row * channels <= kChain;
  const std::size_t unit = rows ? row : 1;
  const std::size_t each = unit * (kChain / (unit * channels));
  for (std::size_t t = 0; t < taps; t += each)
    slices.push_back({t, std::min(each, taps - t), 0, channels});
  return slices;
}

}  // namespace

DirectTaps::DirectTaps(const conv::Problem& p, float outside)
    : a_(p.axes),
      volume_(p.volume()),
      merge_(1),
      step_(static_cast<std::int64_t>(p.groups * p.in_channels)),
      outside_(p.groups * p.in_channels, outside) {
  const auto row = static_cast<std::size_t>(a_[2].kernel);
  slices_ = cut(volume_, row, p.in_channels);
  const bool near = row > 1 && a_[2].dilation == 1 && p.groups == 1;
  if (near && row * p.in_channels <= kChain) merge_ = row;
  for (std::int64_t i = 0; i < a_[0].kernel; ++i) {
    for (std::int64_t j = 0; j < a_[1].kernel; ++j) {
      for (std::int64_t l = 0; l < a_[2].kernel; ++l) {
        offsets_.push_back(
            ((i * a_[0].dilation * a_[1].in + j * a_[1].dilation) * a_[2].in + l * a_[2].dilation) *
            step_);
      }
    }
  }
}

namespace {

bool covers(const conv::Axis& a, std::int64_t at) noexcept {
  return at >= 0 && at + (a.kernel - 1) * a.dilation < a.in;
}

}  // namespace

/// The walk over outputs in order, without a division a pixel.
struct DirectTaps::Walk {
  const DirectTaps& t;
  std::int64_t oz, oy, ox;
  std::int64_t z = 0, y = 0, row = 0;  // of the line of outputs
  bool inside = false;

  Walk(const DirectTaps& taps, std::int64_t flat) noexcept : t(taps) {
    ox = flat % t.a_[2].out;
    oy = flat / t.a_[2].out % t.a_[1].out;
    oz = flat / (t.a_[2].out * t.a_[1].out);
    enter_line();
  }
  void enter_line() noexcept {
    z = conv::tap(t.a_[0], oz, 0);
    y = conv::tap(t.a_[1], oy, 0);
    row = (z * t.a_[1].in + y) * t.a_[2].in;
    inside = covers(t.a_[0], z) && covers(t.a_[1], y);
  }
  Pixel next() noexcept {
    const std::int64_t x = conv::tap(t.a_[2], ox, 0);
    const Pixel p{z, y, x, (row + x) * t.step_, inside && covers(t.a_[2], x)};
    if (++ox == t.a_[2].out) {
      ox = 0;
      if (++oy == t.a_[1].out) oy = 0, ++oz;
      enter_line();
    }
    return p;
  }
};

void DirectTaps::fill_edge(const float* x, const Pixel* pixels, std::size_t n,
                           const float** rows) const noexcept {
  std::size_t tap = 0;
  for (std::int64_t i = 0; i < a_[0].kernel; ++i) {
    for (std::int64_t j = 0; j < a_[1].kernel; ++j) {
      for (std::int64_t l = 0; l < a_[2].kernel; ++l, ++tap, rows += kTilePixels) {
        for (std::size_t r = 0; r < n; ++r) {
          const Pixel& p = pixels[r];
          const bool inside = conv::inside(a_[0], p.z + i * a_[0].dilation) &&
                              conv::inside(a_[1], p.y + j * a_[1].dilation) &&
                              conv::inside(a_[2], p.x + l * a_[2].dilation);
          rows[r] = inside ? x + (p.offset + offsets_[tap]) : outside_.data();
        }
      }
    }
  }
}

void DirectTaps::fill(const float* x, std::size_t first, std::size_t n, DirectTile* tiles,
                      const float** rows) const noexcept {
  const std::size_t n_tiles = tiles_of(n), size = n / n_tiles, larger = n % n_tiles;
  Walk walk(*this, static_cast<std::int64_t>(first));
  for (std::size_t t = 0; t < n_tiles; ++t, rows += volume_ * kTilePixels) {
    std::array<Pixel, kTilePixels> pixels;
    const std::size_t in_tile = size + (t < larger ? 1 : 0);
    bool inside = true;
    for (std::size_t r = 0; r < in_tile; ++r) {
      pixels[r] = walk.next();
      inside = inside && pixels[r].inside;
    }
    tiles[t] = {rows, static_cast<std::uint32_t>(in_tile), inside};
    if (!inside) {
      fill_edge(x, pixels.data(), in_tile, rows);
      continue;
    }
    for (std::size_t r = 0; r < in_tile; ++r) rows[r] = x + pixels[r].offset;
  }
}

}  // namespace cyb::cpu
