// mxfp4 (17 bytes, 32 values): a power of two and nibbles of 4-bit floats (OCP Microscaling Formats
// 1.0). The values stand doubled, the scale halved. x = d*value.
#include <bit>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {

constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(e-128); the two smallest are denormal.
float half_power(unsigned e) noexcept {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

}  // namespace

void decode_mxfp4(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= 32; n -= 32, src += 17, dst += 32) {
    const float d = half_power(static_cast<unsigned>(u8_at(src)));
    for (std::size_t j = 0; j < 16; ++j) {
      const int q = u8_at(src + 1 + j);
      dst[j] = d * kDoubled[q & 15];
      dst[j + 16] = d * kDoubled[q >> 4];
    }
  }
}

}  // namespace cyb::formats
