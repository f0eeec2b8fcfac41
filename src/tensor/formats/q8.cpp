// q8 (34 bytes, 32 values): d f16, 32 signed bytes. x = d*q.
#include <algorithm>
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

namespace {
constexpr std::size_t kValues = 32, kBytes = 34;
}

void decode_q8(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (; n >= kValues; n -= kValues, src += kBytes, dst += kValues) {
    const float d = half_at(src);
    for (std::size_t i = 0; i < kValues; ++i) dst[i] = d * static_cast<float>(i8_at(src + 2 + i));
  }
}

void encode_q8(std::span<const float> src, std::byte* dst) noexcept {
  for (std::size_t at = 0; at + kValues <= src.size(); at += kValues, dst += kBytes) {
    const std::span<const float> x = src.subspan(at, kValues);
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::fabs(v));
    const float d = largest / 127.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    store(dst, f32_to_f16(d));
    for (std::size_t i = 0; i < kValues; ++i) {
      // A value that is not finite has no code; max() with it first keeps the conversion defined.
      const float q = std::min(127.0f, std::max(-127.0f, std::round(x[i] * inverse)));
      store(dst + 2 + i, static_cast<std::int8_t>(q));
    }
  }
}

}  // namespace cyb::formats
