// q4k (144 bytes, 256 values): d, dmin f16, 12 bytes of 6-bit scales and minima, 128 bytes of
// nibbles. x = (d*sc)*n - dmin*mn, eight sub-blocks of 32.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 256, kBytes = 144;
}

void decode_q4k(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src), dmin = half_at(src + 2);
    for (int j = 0; j < 8; ++j) {
      const ScaleMin s = k_scale_min(src + 4, j);
      const float scale = d * static_cast<float>(s.scale),
                  minimum = dmin * static_cast<float>(s.min);
      const std::byte* q = src + 16 + 32 * (j / 2);
      for (int l = 0; l < 32; ++l) {
        const int code = u8_at(q + l) >> (4 * (j % 2)) & 15;
        dst[32 * j + l] = scale * static_cast<float>(code) - minimum;
      }
    }
  }
}

}  // namespace cyb::formats
