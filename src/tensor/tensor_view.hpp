// TensorView / MutableTensorView: borrowed, contiguous, row-major tensors in host memory. Views
// never own.
#pragma once

#include <cstddef>
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

}  // namespace cyb
