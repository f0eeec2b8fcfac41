// f16: IEEE half, 1-5-10 bits.
#include <cmath>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

void decode_f16(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) dst[i] = half_at(src + 2 * i);
}

std::ptrdiff_t encode_f16(std::span<const float> src, std::byte* dst) noexcept {
  std::ptrdiff_t first_bad = -1;
  for (std::size_t i = 0; i < src.size(); ++i) {
    if (std::fabs(src[i]) > 65504.0f && first_bad < 0) first_bad = static_cast<std::ptrdiff_t>(i);
    store(dst + 2 * i, f32_to_f16(src[i]));
  }
  return first_bad;
}

}  // namespace cyb::formats
