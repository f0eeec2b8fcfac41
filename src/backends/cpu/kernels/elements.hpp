// ElementKernels: what graphs alone need of an ISA: functions of single elements, division, norms
// and sums of rows. A part of KernelTable, with its rules.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cyb::cpu {

/// y = f(x; a, b).
enum class ElementOp : std::uint8_t {
  kErf,
  kExp,
  kSqrt,
  kReciprocal,
  kSquare,
  kClip,         // between a and b, NaN stays
  kLeaky,        // a x below 0
  kHardSigmoid,  // a x + b between 0 and 1
  kHardSwish,    // x times hard sigmoid of 1/6, 1/2
  kDivideBy,     // x / a
  kDivided,      // a / x
  kSin,          // |x| <= kMaxAngle
};
inline constexpr std::size_t kNumElementOps = 12;
inline constexpr float kMaxAngle = 131072.0f;

struct ElementKernels {
  void (*map[kNumElementOps])(const float* x, float a, float b, std::size_t n, float* y) noexcept;
  /// y = a / b.
  void (*div)(const float* a, const float* b, std::size_t n, float* y) noexcept;
  /// y = (x - mean) / deviation * gain + bias, each step rounded.
  void (*normalise)(const float* x, const float (&channel)[4], std::size_t n, float* y) noexcept;
  /// One row: y = (x - mean) / sqrt(variance + eps) (* gain) (+ bias); gain and bias may be null.
  void (*layer_norm)(const float* x, const float* gain, const float* bias, std::size_t n, float eps,
                     float* y) noexcept;
  /// e^(x - max) / sum; false, and no result, for a row of -Inf alone.
  bool (*softmax)(const float* x, std::size_t n, float* y) noexcept;
  /// Sum in 16 chains (element k in chain k mod 16), added as a tree.
  float (*sum)(const float* x, std::size_t n) noexcept;
};

}  // namespace cyb::cpu
