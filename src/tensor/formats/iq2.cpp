// iq2xxs (66 bytes), iq2xs (74), iq2s (82): 256 values in groups of eight from a code book of
// magnitudes 8, 25, 43, each with its sign. x = ((d*(0.5+s))*0.25 * magnitude) * sign.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"
#include "tensor/formats/iq_bytes.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256;
constexpr float kMagnitude[4] = {8, 25, 43, 0};

/// Eight values of one row of a code book.
void put_group(unsigned row, unsigned signs, float scale, float* dst) noexcept {
  for (unsigned j = 0; j < 8; ++j) {
    dst[j] = scale * kMagnitude[row >> (2 * j) & 3] * sign_of(signs, j);
  }
}

float scale_of(float d, unsigned code) noexcept {
  return d * (0.5f + static_cast<float>(code)) * 0.25f;
}

/// Scale of sub-block k of 16 values: nibbles, low first.
unsigned nibble_of(const std::byte* scales, unsigned k) noexcept {
  return static_cast<unsigned>(u8_at(scales + k / 2)) >> (4 * (k % 2)) & 15;
}

}  // namespace

// d f16, then for each 32 values four book indices of 8 bits and a word: four sign sets of 7 bits
// and the scale in its upper 4.
void decode_iq2xxs(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 66) {
    const float d = half_at(src);
    for (unsigned b = 0; b < 8; ++b) {
      const std::byte* at = src + 2 + 8 * b;
      const auto word = load<std::uint32_t>(at + 4);
      const float scale = scale_of(d, word >> 28);
      for (unsigned g = 0; g < 4; ++g, dst += 8) {
        const unsigned signs = with_parity(word >> (7 * g) & 127);
        put_group(kGridIq2xxs[static_cast<unsigned>(u8_at(at + g))], signs, scale, dst);
      }
    }
  }
}

// d f16, 32 words (9 bits of book index, 7 of signs), 8 bytes of scales.
void decode_iq2xs(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 74) {
    const float d = half_at(src);
    for (unsigned g = 0; g < 32; ++g, dst += 8) {
      const unsigned word = load<std::uint16_t>(src + 2 + 2 * g);
      const float scale = scale_of(d, nibble_of(src + 66, g / 2));
      put_group(kGridIq2xs[word & 511], with_parity(word >> 9), scale, dst);
    }
  }
}

// d f16, 32 low bytes of the index, 32 bytes of signs, 8 bytes with two high bits each, 8 of
// scales.
void decode_iq2s(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 82) {
    const float d = half_at(src);
    for (unsigned g = 0; g < 32; ++g, dst += 8) {
      const unsigned high = static_cast<unsigned>(u8_at(src + 66 + g / 4)) >> (2 * (g % 4)) & 3;
      const unsigned index = static_cast<unsigned>(u8_at(src + 2 + g)) | high << 8;
      const float scale = scale_of(d, nibble_of(src + 74, g / 2));
      put_group(kGridIq2s[index], static_cast<unsigned>(u8_at(src + 34 + g)), scale, dst);
    }
  }
}

}  // namespace cyb::formats
