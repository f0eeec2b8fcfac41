// ternary (1 byte, 4 values): two bits a value, 00 -> 0, 01 -> +1, 10 -> -1, 11 invalid. The scale
// is a sibling tensor.
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

void decode_ternary(const std::byte* src, float* dst, std::size_t n) noexcept {
  constexpr float kValue[4] = {0.0f, 1.0f, -1.0f, 0.0f};
  for (std::size_t i = 0; i < n; ++i) dst[i] = kValue[u8_at(src + i / 4) >> (2 * (i % 4)) & 3];
}

std::ptrdiff_t ternary_find_invalid(std::span<const std::byte> bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int b = u8_at(&bytes[i]);
    if ((b & b >> 1 & 0x55) != 0) return static_cast<std::ptrdiff_t>(i);
  }
  return -1;
}

float encode_ternary(std::span<const float> src, std::byte* dst) noexcept {
  double sum = 0;
  for (const float v : src) sum += std::fabs(static_cast<double>(v));
  const float scale =
      src.empty() ? 0.0f : static_cast<float>(sum / static_cast<double>(src.size()));
  for (std::size_t i = 0; i < src.size(); i += 4) {
    int byte = 0;
    for (std::size_t j = 0; j < 4 && i + j < src.size(); ++j) {
      const float q = scale > 0 ? std::nearbyint(src[i + j] / scale) : 0.0f;
      byte |= (q >= 1 ? 1 : q <= -1 ? 2 : 0) << (2 * j);
    }
    store(dst + i / 4, static_cast<std::uint8_t>(byte));
  }
  return scale;
}

}  // namespace cyb::formats
