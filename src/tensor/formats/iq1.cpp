// iq1s (50 bytes), iq1m (56): 256 values in groups of eight from a code book of -1, 0, 1, shifted
// by an eighth up or down. x = (d*(2s+1)) * (value + shift).
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"
#include "tensor/formats/iq_bytes.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256;

void put_group(unsigned row, float scale, float shift, float* dst) noexcept {
  for (unsigned j = 0; j < 8; ++j) {
    const int value = static_cast<int>(row >> (2 * j) & 3) - 1;
    dst[j] = scale * (static_cast<float>(value) + shift);
  }
}

float shift_of(bool down) noexcept {
  return down ? -0.125f : 0.125f;
}

}  // namespace

// d f16, 32 low bytes of the index, then a word for each 32 values: four times three high bits, the
// scale in bits 12..14, the direction of the shift in bit 15.
void decode_iq1s(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 50) {
    const float d = half_at(src);
    for (unsigned g = 0; g < 32; ++g, dst += 8) {
      const unsigned word = load<std::uint16_t>(src + 34 + 2 * (g / 4));
      const unsigned index = static_cast<unsigned>(u8_at(src + 2 + g)) | (word >> (3 * (g % 4)) & 7)
                                                                             << 8;
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      put_group(kGridIq1[index], scale, shift_of((word & 0x8000) != 0), dst);
    }
  }
}

// 32 low bytes of the index, 16 bytes of nibbles (three high bits, the direction of the shift),
// four words: four scales of 3 bits each for 16 values; their upper nibbles together are d as f16.
void decode_iq1m(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 56) {
    unsigned words[4], bits = 0;
    for (unsigned k = 0; k < 4; ++k) {
      words[k] = load<std::uint16_t>(src + 48 + 2 * k);
      bits |= words[k] >> 12 << (4 * k);
    }
    const float d = f16_to_f32(static_cast<std::uint16_t>(bits));
    for (unsigned g = 0; g < 32; ++g, dst += 8) {
      const unsigned nibble = static_cast<unsigned>(u8_at(src + 32 + g / 2)) >> (4 * (g % 2)) & 15;
      const unsigned index = static_cast<unsigned>(u8_at(src + g)) | (nibble & 7) << 8;
      const unsigned code = words[g / 8] >> (3 * (g / 2 % 4)) & 7;
      const float scale = d * static_cast<float>(2 * code + 1);
      put_group(kGridIq1[index], scale, shift_of((nibble & 8) != 0), dst);
    }
  }
}

}  // namespace cyb::formats
