// Patches of a convolution as the B of a tile product: blocks of 16 outputs, [K][16] each, K =
// (channel, taps). A tap outside the input is a zero.
#pragma once

#include "ops/conv/geometry.hpp"

namespace cyb::cpu {

inline constexpr std::size_t kBlock = 16;
/// Floats that a copy may write past the last block.
inline constexpr std::size_t kPackSlack = 16;

class ConvPack {
 public:
  explicit ConvPack(const conv::Problem& problem);
  std::size_t k() const noexcept { return k_; }
  /// Outputs of the axes as the pack walks them; a pointwise convolution is one long row.
  const conv::Axes& axes() const noexcept { return a_; }
  /// Outputs [first, first + n), n <= 16, of one group's input x: [K][16], lanes past n are zeros.
  /// `room`: floats from x to the end of the input.
  void block(const float* x, std::size_t room, std::size_t first, std::size_t n,
             float* to) const noexcept;

 private:
  /// Neighbours in one row of outputs.
  struct Run {
    std::size_t lane, n;
    std::int64_t z, y, x;  // input position of tap 0
  };
  struct Line;
  void tap(const Line& line, const Run& run, std::int64_t l, float* to) const noexcept;

  conv::Axes a_;
  std::size_t channels_, plane_, k_;
};

}  // namespace cyb::cpu
