// q2k (84 bytes, 256 values): 16 bytes of 4-bit scale and minimum, bit pairs, d, dmin f16.
// x = (d*sc)*n - dmin*mn, sixteen sub-blocks of 16.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 256, kBytes = 84;
}

void decode_q2k(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src + 80), dmin = half_at(src + 82);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, group = i % 128 / 32, l = i % 32;
      const int s = u8_at(src + i / 16);
      const int code = u8_at(src + 16 + 32 * half + l) >> (2 * group) & 3;
      dst[i] = (d * static_cast<float>(s & 15)) * static_cast<float>(code) -
               dmin * static_cast<float>(s >> 4);
    }
  }
}

}  // namespace cyb::formats
