// .npy files of the backend tests.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb::test {

struct NpyArray {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;
};

/// Nullopt for a file that is missing or of another kind.
std::optional<NpyArray> read_npy(const std::string& path);
bool write_npy(const std::string& path, DType dtype, const Shape& shape, const std::byte* data);

}  // namespace cyb::test
