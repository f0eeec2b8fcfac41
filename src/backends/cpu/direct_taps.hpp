// DirectTaps: where the taps of a convolution over channels-last pixels lie, as tables of pointers
// for the direct kernel. A tap outside the input leads to a pixel of its own.
#pragma once

#include <vector>

#include "backends/cpu/kernels/table.hpp"
#include "ops/conv/geometry.hpp"

namespace cyb::cpu {

/// A part of the sum of one output: one chain, whose length the shape of the weight decides.
struct DirectSlice {
  std::size_t first_tap, n_taps, first_channel, n_channels;
};

class DirectTaps {
 public:
  /// `outside`: what a tap outside the input reads.
  explicit DirectTaps(const conv::Problem& problem, float outside = 0.0f);

  const std::vector<DirectSlice>& slices() const noexcept { return slices_; }
  static constexpr std::size_t tiles_of(std::size_t n_pixels) {
    return (n_pixels + kTilePixels - 1) / kTilePixels;
  }
  /// Pointers that fill() writes for n tiles.
  std::size_t pointers(std::size_t n_tiles) const noexcept {
    return n_tiles * volume_ * kTilePixels;
  }
  /// What a job says of tiles whose taps are all inside.
  const std::ptrdiff_t* offsets() const noexcept { return offsets_.data(); }
  std::size_t merge() const noexcept { return merge_; }
  /// Tiles of outputs [first, first + n) of a plane, sizes as equal as may be. `x`: channel 0 of
  /// the plane's first pixel.
  void fill(const float* x, std::size_t first, std::size_t n, DirectTile* tiles,
            const float** rows) const noexcept;

 private:
  struct Pixel {
    std::int64_t z, y, x, offset;  // of tap 0
    bool inside;                   // with all taps
  };
  struct Walk;
  void fill_edge(const float* x, const Pixel* pixels, std::size_t n,
                 const float** rows) const noexcept;

  conv::Axes a_;
  std::size_t volume_, merge_;           // taps; those side by side in memory
  std::int64_t step_;                    // floats from one pixel to the next
  std::vector<std::ptrdiff_t> offsets_;  // of taps from tap 0
  std::vector<DirectSlice> slices_;
  std::vector<float> outside_;  // a pixel
};

}  // namespace cyb::cpu
