// q4 (18 bytes, 32 values): d f16, 16 bytes of nibbles, low nibbles first. x = d*(n-8).
#include <algorithm>
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 32, kBytes = 18;
}

void decode_q4(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src);
    for (std::size_t j = 0; j < 16; ++j) {
      const int q = u8_at(src + 2 + j);
      dst[j] = d * static_cast<float>((q & 15) - 8);
      dst[j + 16] = d * static_cast<float>((q >> 4) - 8);
    }
  }
}

namespace {

unsigned nibble(float x, float inverse) noexcept {
  const float scaled = x * inverse + 8.5f;
  return static_cast<unsigned>(std::min(15.0f, std::max(0.0f, scaled)));
}

}  // namespace

void encode_q4(std::span<const float> src, std::byte* dst) noexcept {
  for (std::size_t at = 0; at + kValues <= src.size(); at += kValues, dst += kBytes) {
    const std::span<const float> x = src.subspan(at, kValues);
    float extreme = 0;  // the value of largest magnitude, with its sign; first one on ties
    for (const float v : x) {
      if (std::fabs(v) > std::fabs(extreme)) extreme = v;
    }
    const float d = extreme / -8.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    store(dst, f32_to_f16(d));
    for (std::size_t j = 0; j < 16; ++j) {
      const unsigned both = nibble(x[j], inverse) | nibble(x[j + 16], inverse) << 4;
      store(dst + 2 + j, static_cast<std::uint8_t>(both));
    }
  }
}

}  // namespace cyb::formats
