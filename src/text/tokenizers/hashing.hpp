// The hash of the open-addressing tables here: fast for the few bytes of a token, with a bound on
// probing so that a hostile vocabulary cannot make a table quadratic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cyb::text {

/// Probes after which a table refuses its input. Random keys at the load used here stay far below.
inline constexpr std::size_t kMaxProbes = 1024;

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t load_bytes(const char* data, std::size_t size) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, data, size);
  return word;
}

inline std::uint64_t hash_bytes(std::string_view text) noexcept {
  constexpr std::uint64_t kA = 0x9E3779B97F4A7C15ULL, kB = 0xD1B54A32D192ED03ULL;
  const char* data = text.data();
  std::size_t left = text.size();
  std::uint64_t hash = mix(left ^ kA, kB);
  for (; left > 8; data += 8, left -= 8) hash = mix(hash ^ load_bytes(data, 8), kA);
  std::uint64_t tail = 0;
  if (left >= 4) {
    tail = load_bytes(data, 4) | load_bytes(data + left - 4, 4) << 32;
  } else if (left > 0) {
    tail = static_cast<std::uint8_t>(data[0]) |
           static_cast<std::uint64_t>(static_cast<std::uint8_t>(data[left / 2])) << 8 |
           static_cast<std::uint64_t>(static_cast<std::uint8_t>(data[left - 1])) << 16;
  }
  return mix(hash ^ tail, kB);
}

/// Slots of a table of `count` keys: a power of two, at most 5/8 full.
inline std::size_t table_slots(std::size_t count) noexcept {
  std::size_t slots = 16;
  while (slots * 5 < count * 8) slots *= 2;
  return slots;
}

}  // namespace cyb::text
