// SafetensorsFile: the header of one safetensors file, checked as the format demands: every byte of
// the data belongs to exactly one tensor. Header = u64 length, JSON {name: {dtype, shape,
// data_offsets}}, then the data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb::safetensors {

struct TensorInfo {
  std::string name;
  std::string dtype;  // as the file says: "F32", "BF16", "F8_E4M3"
  Shape shape;
  std::uint64_t offset = 0;  // from the first byte of the file
  std::uint64_t size_bytes = 0;
};

struct SafetensorsFile {
  std::uint64_t data_offset = 0;
  std::vector<TensorInfo> tensors;  // ascending offset
  std::vector<std::pair<std::string, std::string>> metadata;

  /// Errors: Format with code "SAFETENSORS", naming the tensor.
  static Result<SafetensorsFile> parse(std::span<const std::byte> bytes);
};

/// Our encoding of a safetensors dtype; nullopt where there is none (yet).
std::optional<DType> dtype_of(std::string_view name) noexcept;

/// An Error of kind Format with code "SAFETENSORS".
Error safetensors_error(std::string text);

}  // namespace cyb::safetensors
