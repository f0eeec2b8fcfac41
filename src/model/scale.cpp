// x = value * scale in f32.
#include "model/scale.hpp"

namespace cyb {
namespace {

constexpr std::int64_t squares(std::int64_t n) noexcept {
  return (n + kScaleSquare - 1) / kScaleSquare;
}

std::int64_t rows_of(const Shape& tensor) noexcept {
  return tensor.rank() < 2 ? 1 : tensor[tensor.rank() - 2];
}

}  // namespace

bool is_scale_shape(DType dtype, const Shape& tensor, const Shape& scale) noexcept {
  if (scale.rank() == 1) return scale[0] == 1 || scale[0] == rows_of(tensor);
  return dtype != DType::kTernary && tensor.rank() == 2 && tensor[0] > 0 && tensor[1] > 0 &&
         scale == Shape{squares(tensor[0]), squares(tensor[1])};
}

void apply_scale(const Shape& tensor, const Shape& scale, const float* scales, std::size_t first,
                 std::span<float> values) noexcept {
  if (values.empty()) return;
  const auto n_columns = static_cast<std::size_t>(tensor.back());
  const auto n_rows = static_cast<std::size_t>(rows_of(tensor));
  const bool in_squares = scale.rank() == 2;
  const std::size_t across = in_squares ? static_cast<std::size_t>(scale[1]) : 0;
  const std::size_t side = kScaleSquare;
  for (std::size_t i = 0; i < values.size();) {
    const std::size_t row = (first + i) / n_columns % n_rows, column = (first + i) % n_columns;
    const std::size_t run = in_squares ? side - column % side : n_columns - column;
    const std::size_t end = i + (run < n_columns - column ? run : n_columns - column);
    const std::size_t at = in_squares      ? row / side * across + column / side
                           : scale[0] == 1 ? 0
                                           : row;
    for (; i < end && i < values.size(); ++i) values[i] *= scales[at];
  }
}

}  // namespace cyb
