// q5k (176 bytes, 256 values): as q4k with the fifth bits in 32 bytes between the scales and the
// nibbles.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 256, kBytes = 176;
}

void decode_q5k(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src), dmin = half_at(src + 2);
    const std::byte* high = src + 16;
    for (int j = 0; j < 8; ++j) {
      const ScaleMin s = k_scale_min(src + 4, j);
      const float scale = d * static_cast<float>(s.scale),
                  minimum = dmin * static_cast<float>(s.min);
      const std::byte* q = src + 48 + 32 * (j / 2);
      for (int l = 0; l < 32; ++l) {
        const int code = (u8_at(q + l) >> (4 * (j % 2)) & 15) | (u8_at(high + l) >> j & 1) << 4;
        dst[32 * j + l] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
}

}  // namespace cyb::formats
