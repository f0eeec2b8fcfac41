// NumPy files (.npy, versions 1 to 3): plain tensors in and out. Layout:
// numpy.lib.format; the header is a Python literal, of which exactly the three documented keys are
// read.
#pragma once

#include <span>
#include <string>

#include "base/result.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb {

/// A tensor inside `bytes`, which stay the caller's. Little-endian (or one-byte) numbers and bools
/// in C order; rank <= 8.
/// Errors: Format, with what is wrong; InvalidInput for Fortran order, big-endian and structured
/// dtypes.
Result<TensorView> parse_npy(std::span<const std::byte> bytes);

/// The header before the data of a C-order array: version 1.0, padded so that the data starts at a
/// multiple of 64 bytes. Errors: NotBuilt for a dtype that NumPy has not.
Result<std::string> npy_header(DType dtype, const Shape& shape);

}  // namespace cyb
