// IntegerKernels: products of small integers, and f32 to and from them. A part of KernelTable, with
// its rules; sums are exact, so that any order gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyb::cpu {

/// y[row][output] = sum of a * b over pairs of int16, in i32, wrapping.
struct PairsJob {
  const std::int32_t* a;  // row r at a + r * n_pairs: two int16 a word
  std::size_t rows, n_pairs;
  const std::int32_t* b;  // [n_pairs][16] words per block of 16 outputs
  std::size_t n_outputs;
  std::int32_t* y;
  std::size_t y_row;
};

struct IntegerKernels {
  void (*pairs)(const PairsJob&) noexcept;
  /// round(x / scale) + zero, halves to even, between low and high; NaN gives zero. Bytes.
  void (*quantise)(const float* x, std::size_t n, float scale,
                   const std::int32_t (&zero_low_high)[3], std::uint8_t* y) noexcept;
  /// (x - zero) * scale of signed or unsigned bytes.
  void (*dequantise[2])(const std::uint8_t* x, std::size_t n, std::int32_t zero, float scale,
                        float* y) noexcept;
  /// Smallest and largest of n values and 0; false where one is not finite.
  bool (*range)(const float* x, std::size_t n, float (&low_high)[2]) noexcept;
};

}  // namespace cyb::cpu
