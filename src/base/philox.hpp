// Philox4x32-10 (Salmon et al., SC 2011): counter-based random numbers, keyed by seed; no state.
#pragma once

#include <array>
#include <cstdint>

namespace cyb {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                               std::uint64_t key) noexcept {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(p1),
        static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return counter;
}

/// Uniform in [0, 1) with 24 bits, as sampling draws it: counter = (position, 0, 0, row).
inline float philox_uniform(std::uint64_t seed, std::uint32_t position,
                            std::uint32_t row) noexcept {
  return static_cast<float>(philox4x32({position, 0, 0, row}, seed)[0] >> 8) * 0x1p-24f;
}

}  // namespace cyb
