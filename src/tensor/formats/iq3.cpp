// iq3xxs (98 bytes), iq3s (110): 256 values in groups of four from a code book of magnitudes, each
// with its sign. x = (scale * magnitude) * sign.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"
#include "tensor/formats/iq_bytes.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256;
constexpr float kMagnitudeXxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float kMagnitudeS[8] = {1, 3, 5, 7, 9, 11, 13, 15};

/// Four values of one row; `signs` holds theirs in its low bits.
void put_group(const float* magnitude, unsigned row, unsigned signs, float scale,
               float* dst) noexcept {
  for (unsigned j = 0; j < 4; ++j) {
    dst[j] = scale * magnitude[row >> (3 * j) & 7] * sign_of(signs, j);
  }
}

}  // namespace

// d f16, 64 book indices, then a word for each 32 values: four sign sets of 7 bits, each for eight
// values, and the scale in its upper 4. scale = d*(0.5+s)*0.5.
void decode_iq3xxs(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 98) {
    const float d = half_at(src);
    for (unsigned g = 0; g < 64; ++g, dst += 4) {
      const auto word = load<std::uint32_t>(src + 66 + 4 * (g / 8));
      const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
      const unsigned signs = with_parity(word >> (7 * (g % 8 / 2)) & 127) >> (4 * (g % 2));
      const unsigned row = kGridIq3xxs[static_cast<unsigned>(u8_at(src + 2 + g))];
      put_group(kMagnitudeXxs, row, signs, scale, dst);
    }
  }
}

// d f16, 64 low bytes of the index, 8 bytes with one high bit each, 32 bytes of signs, 4 bytes of
// scales for 32 values each. scale = d*(1+2s).
void decode_iq3s(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 110) {
    const float d = half_at(src);
    for (unsigned g = 0; g < 64; ++g, dst += 4) {
      const unsigned high = static_cast<unsigned>(u8_at(src + 66 + g / 8)) >> (g % 8) & 1;
      const unsigned index = static_cast<unsigned>(u8_at(src + 2 + g)) | high << 8;
      const int code = u8_at(src + 106 + g / 16) >> (4 * (g / 8 % 2)) & 15;
      const float scale = d * static_cast<float>(1 + 2 * code);
      const auto signs = static_cast<unsigned>(u8_at(src + 74 + g / 2)) >> (4 * (g % 2));
      put_group(kMagnitudeS, kGridIq3s[index], signs, scale, dst);
    }
  }
}

}  // namespace cyb::formats
