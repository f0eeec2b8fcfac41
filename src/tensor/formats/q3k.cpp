// q3k (110 bytes, 256 values): high bits (clear means -4), bit pairs, 12 bytes of 6-bit scales, d
// f16. x = (d*sc)*v.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256, kBytes = 110;

/// Scale k = 0..15, -32..31, from the 12 packed bytes.
int scale_of(const std::byte* s, int k) noexcept {
  const int lo = k < 8 ? u8_at(s + k) & 15 : u8_at(s + k - 8) >> 4;
  const int hi = u8_at(s + 8 + k % 4) >> (2 * (k / 4)) & 3;
  return (lo | hi << 4) - 32;
}

}  // namespace

void decode_q3k(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src + 108);
    for (int i = 0; i < 256; ++i) {
      const int half = i / 128, group = i % 128 / 32, l = i % 32;
      int v = u8_at(src + 32 + 32 * half + l) >> (2 * group) & 3;
      if ((u8_at(src + l) >> (4 * half + group) & 1) == 0) v -= 4;
      dst[i] = (d * static_cast<float>(scale_of(src + 96, i / 16))) * static_cast<float>(v);
    }
  }
}

}  // namespace cyb::formats
