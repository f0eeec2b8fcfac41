// Reading the fields of a block: little-endian, unaligned, by memcpy. Internal to formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.hpp"

namespace cyb::formats {

template <class T>
inline T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
inline void store(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof(T));
}

/// The IEEE half at `at`, h(b) of the spec.
inline float half_at(const std::byte* at) noexcept {
  return f16_to_f32(load<std::uint16_t>(at));
}

inline int u8_at(const std::byte* at) noexcept {
  return static_cast<int>(*at);
}
inline int i8_at(const std::byte* at) noexcept {
  return load<std::int8_t>(at);
}

/// Scale and minimum of sub-block j (0..7) of q4k and q5k from their 12 packed bytes.
struct ScaleMin {
  int scale, min;
};
inline ScaleMin k_scale_min(const std::byte* s, int j) noexcept {
  if (j < 4) return {u8_at(s + j) & 63, u8_at(s + j + 4) & 63};
  return {(u8_at(s + j + 4) & 15) | (u8_at(s + j - 4) >> 6) << 4,
          u8_at(s + j + 4) >> 4 | (u8_at(s + j) >> 6) << 4};
}

}  // namespace cyb::formats
