// i32q16 and i16q8: two's complement fixed point, 16 and 8 fraction bits.
#include <cmath>
#include <limits>

#include "tensor/formats/bytes.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::formats {

void decode_i32q16(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    dst[i] = static_cast<float>(load<std::int32_t>(src + 4 * i)) / 65536.0f;
  }
}

void decode_i16q8(const std::byte* src, float* dst, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    dst[i] = static_cast<float>(load<std::int16_t>(src + 2 * i)) / 256.0f;
  }
}

namespace {

/// f64 holds every product and every bound exactly. Out of range: stores 0, returns the first
/// index.
template <class T>
std::ptrdiff_t encode_fixed(std::span<const float> src, std::byte* dst, double one) noexcept {
  std::ptrdiff_t first_bad = -1;
  for (std::size_t i = 0; i < src.size(); ++i) {
    const double q = std::nearbyint(static_cast<double>(src[i]) * one);
    const bool fits = q >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      q <= static_cast<double>(std::numeric_limits<T>::max());
    if (!fits && first_bad < 0) first_bad = static_cast<std::ptrdiff_t>(i);
    store(dst + sizeof(T) * i, fits ? static_cast<T>(q) : T{0});
  }
  return first_bad;
}

}  // namespace

std::ptrdiff_t encode_i32q16(std::span<const float> src, std::byte* dst) noexcept {
  return encode_fixed<std::int32_t>(src, dst, 65536.0);
}

std::ptrdiff_t encode_i16q8(std::span<const float> src, std::byte* dst) noexcept {
  return encode_fixed<std::int16_t>(src, dst, 256.0);
}

}  // namespace cyb::formats
