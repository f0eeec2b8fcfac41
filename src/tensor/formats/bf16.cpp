// bf16: the upper 16 bits of f32.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

void decode_bf16(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) dst[i] = bf16_to_f32(load<std::uint16_t>(src + 2 * i));
}

void encode_bf16(std::span<const float> src, std::byte* dst) noexcept {
  for (std::size_t i = 0; i < src.size(); ++i) store(dst + 2 * i, f32_to_bf16(src[i]));
}

}  // namespace cyb::formats
