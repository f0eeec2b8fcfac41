// fp8e4m3 (1 sign, 4 exponent bits with bias 7, 3 fraction bits; no infinities, all ones is NaN)
// and fp8e5m2 (the upper byte of an IEEE half). Without the scale, which is a sibling tensor.
#include <array>
#include <limits>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {

constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> table{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, fraction = code & 7;
    // In units of 2^-9, the smallest denormal.
    const int units = exponent == 0 ? fraction : (8 + fraction) << (exponent - 1);
    float value = static_cast<float>(units) * 0x1p-9f;
    if ((code & 127) == 127) value = std::numeric_limits<float>::quiet_NaN();
    table[static_cast<std::size_t>(code)] = (code & 128) != 0 ? -value : value;
  }
  return table;
}();

}  // namespace

void decode_fp8e4m3(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) dst[i] = kE4m3[static_cast<std::size_t>(u8_at(src + i))];
}

void decode_fp8e5m2(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    dst[i] = f16_to_f32(static_cast<std::uint16_t>(u8_at(src + i) << 8));
  }
}

}  // namespace cyb::formats
