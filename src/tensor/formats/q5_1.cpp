// q5_1 (24 bytes, 32 values): d, m f16, fifth bits in a u32, 16 bytes of nibbles. x = d*n + m.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 32, kBytes = 24;
}

void decode_q5_1(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src), m = half_at(src + 2);
    const auto high = load<std::uint32_t>(src + 4);
    for (std::uint32_t j = 0; j < 16; ++j) {
      const int q = u8_at(src + 8 + j);
      const int fifth0 = static_cast<int>(high >> j & 1u) << 4;
      const int fifth1 = static_cast<int>(high >> (j + 16) & 1u) << 4;
      dst[j] = d * static_cast<float>((q & 15) | fifth0) + m;
      dst[j + 16] = d * static_cast<float>((q >> 4) | fifth1) + m;
    }
  }
}

}  // namespace cyb::formats
