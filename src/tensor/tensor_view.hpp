// TensorView / MutableTensorView: borrowed, contiguous, row-major tensors in host memory. Views
// never own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb {

struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* data = nullptr;  // null: an absent optional input

  bool present() const noexcept { return data != nullptr; }
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data);
  }
};

struct MutableTensorView {
  DType dtype = DType::kF32;
  Shape shape;
  std::byte* data = nullptr;

  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
  operator TensorView() const noexcept { return {dtype, shape, data}; }
};

/// Bytes of one row, the last dimension; it must be whole blocks.
inline std::size_t row_bytes(DType dtype, std::int64_t row_values) noexcept {
  const FormatInfo& format = format_info(dtype);
  return static_cast<std::size_t>(row_values) / format.block_values * format.block_bytes;
}

/// Rows of a tensor seen as a matrix [rows, last dimension]; 1 for rank 0 and 1.
inline std::int64_t row_count(const Shape& shape) noexcept {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return rows;
}

/// Rows [first, first + count) of a tensor seen as a matrix; shape [count, last dimension].
inline TensorView rows_of(const TensorView& tensor, std::int64_t first,
                          std::int64_t count) noexcept {
  const std::int64_t width = tensor.shape.rank() == 0 ? 1 : tensor.shape.back();
  return {tensor.dtype, Shape{count, width},
          tensor.data + static_cast<std::size_t>(first) * row_bytes(tensor.dtype, width)};
}

}  // namespace cyb
