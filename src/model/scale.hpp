// Sibling scales of ternary and fp8 tensors: one number, one a row, or one for each square of
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb {

/// Side of the squares of values that share one scale, where a scale has two dimensions. The last
/// squares of a row or column may be smaller.
inline constexpr std::int64_t kScaleSquare = 128;

/// Encodings whose values are multiplied by a sibling `<name>.scale` (fp8: where there is one).
inline bool has_scale_sibling(DType dtype) noexcept {
  return dtype == DType::kTernary || dtype == DType::kFp8e4m3 || dtype == DType::kFp8e5m2;
}

/// True for the shapes that a scale of a tensor may have: [1], [rows], and of an fp8 matrix
/// [ceil(rows / 128), ceil(columns / 128)].
bool is_scale_shape(DType dtype, const Shape& tensor, const Shape& scale) noexcept;

/// Multiplies `values`, which are those from index `first` on of a tensor of shape `tensor`, by
/// their scales of the shape `scale`, which is_scale_shape() takes.
void apply_scale(const Shape& tensor, const Shape& scale, const float* scales, std::size_t first,
                 std::span<float> values) noexcept;

}  // namespace cyb
