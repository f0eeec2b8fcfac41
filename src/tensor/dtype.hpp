// DType: element and block encodings by their stable tags (spec model-format section 6), one row
// each in formats/format_list.inc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cyb {

enum class DType : std::uint8_t {
#define CYB_FORMAT(id, tag, name, block, bytes, cls, gguf) id = tag,
#include "tensor/formats/format_list.inc"
#undef CYB_FORMAT
};

enum class DTypeClass : std::uint8_t { kFloat, kInt, kBool, kBlock, kFixed };

/// Decodes whole blocks: `n_values` values (a multiple of the block) from `src` into `dst`, all
/// arithmetic in f32 in the order of the spec.
using DecodeFn = void (*)(const std::byte* src, float* dst, std::size_t n_values) noexcept;

struct FormatInfo {
  DType dtype;
  std::string_view name;
  std::uint32_t block_values;  // B
  std::uint32_t block_bytes;
  DTypeClass cls;
  int gguf_type;    // ggml type id, -1: none
  DecodeFn decode;  // null where no decoder exists yet
};

/// The row of a format; every DType value has one.
const FormatInfo& format_info(DType dtype) noexcept;
std::optional<DType> find_dtype(std::string_view name) noexcept;
std::optional<DType> dtype_from_tag(std::uint8_t tag) noexcept;
std::optional<DType> dtype_from_gguf(std::uint32_t ggml_type) noexcept;
std::span<const FormatInfo> all_formats() noexcept;

inline std::string_view dtype_name(DType dtype) noexcept {
  return format_info(dtype).name;
}
inline bool is_block(DType dtype) noexcept {
  return format_info(dtype).cls == DTypeClass::kBlock;
}

}  // namespace cyb
