// tq1_0 (54 bytes) and tq2_0 (66): 256 values of -1, 0, 1 and one scale. x = d*value.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {

constexpr std::size_t kValues = 256;

/// `n_digits` runs of `n_bytes` values: digit k of a byte, in base 3 of byte/256, is value k of its
/// place.
float* put_digits(const std::byte* src, int n_bytes, int n_digits, float d, float* dst) noexcept {
  unsigned power = 1;
  for (int k = 0; k < n_digits; ++k, power *= 3) {
    for (int j = 0; j < n_bytes; ++j) {
      const unsigned rest = static_cast<unsigned>(u8_at(src + j)) * power & 255;
      *dst++ = d * static_cast<float>(static_cast<int>(rest * 3 >> 8) - 1);
    }
  }
  return dst;
}

}  // namespace

// 32 and 16 bytes of five digits, 4 bytes of four, d f16.
void decode_tq1_0(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 54) {
    const float d = half_at(src + 52);
    dst = put_digits(src, 32, 5, d, dst);
    dst = put_digits(src + 32, 16, 5, d, dst);
    dst = put_digits(src + 48, 4, 4, d, dst);
  }
}

// 64 bytes of bit pairs, d f16.
void decode_tq2_0(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += 66) {
    const float d = half_at(src + 64);
    for (int i = 0; i < 256; ++i) {
      const int code = u8_at(src + 32 * (i / 128) + i % 32) >> (2 * (i % 128 / 32)) & 3;
      *dst++ = d * static_cast<float>(code - 1);
    }
  }
}

}  // namespace cyb::formats
