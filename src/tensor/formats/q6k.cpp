// q6k (210 bytes, 256 values): low nibbles, high bit pairs, 16 signed scales, d f16. x =
// (d*sc)*(n-32).
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 256, kBytes = 210;
}

void decode_q6k(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const std::byte *low = src, *high = src + 128, *scales = src + 192;
    const float d = half_at(src + 208);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, group = i % 128 / 32, l = i % 32;
      const int lo = u8_at(low + 64 * half + 32 * (group % 2) + l) >> (4 * (group / 2)) & 15;
      const int hi = u8_at(high + 32 * half + l) >> (2 * group) & 3;
      const float scale = d * static_cast<float>(i8_at(scales + i / 16));
      dst[i] = scale * static_cast<float>((lo | hi << 4) - 32);
    }
  }
}

}  // namespace cyb::formats
