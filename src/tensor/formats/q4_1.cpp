// q4_1 (20 bytes, 32 values): d, m f16, 16 bytes of nibbles. x = d*n + m.
#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 32, kBytes = 20;
}

void decode_q4_1(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src), m = half_at(src + 2);
    for (std::size_t j = 0; j < 16; ++j) {
      const int q = u8_at(src + 4 + j);
      dst[j] = d * static_cast<float>(q & 15) + m;
      dst[j + 16] = d * static_cast<float>(q >> 4) + m;
    }
  }
}

}  // namespace cyb::formats
