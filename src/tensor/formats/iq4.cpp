// iq4nl (18 bytes, 32 values) and iq4xs (136 bytes, 256 values): nibbles that index sixteen values
// of unequal steps. x = d*value, in iq4xs x = (d*(s-32))*value.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {

constexpr float kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};

/// 32 values from 16 bytes, low nibbles first.
void put_nibbles(const std::byte* src, float scale, float* dst) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    const int q = u8_at(src + j);
    dst[j] = scale * kLevels[q & 15];
    dst[j + 16] = scale * kLevels[q >> 4];
  }
}

}  // namespace

void decode_iq4nl(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= 32; n -= 32, src += 18, dst += 32) put_nibbles(src + 2, half_at(src), dst);
}

// d f16, a word with two high bits of each scale, 4 bytes with their low nibbles, 128 bytes of
// nibbles.
void decode_iq4xs(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= 256; n -= 256, src += 136) {
    const float d = half_at(src);
    const int high = load<std::uint16_t>(src + 2);
    for (int b = 0; b < 8; ++b, dst += 32) {
      const int low = u8_at(src + 4 + b / 2) >> (4 * (b % 2)) & 15;
      const int code = low | (high >> (2 * b) & 3) << 4;
      put_nibbles(src + 8 + 16 * b, d * static_cast<float>(code - 32), dst);
    }
  }
}

}  // namespace cyb::formats
