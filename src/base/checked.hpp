// Checked unsigned 64-bit arithmetic for sizes that come from files: nullopt on overflow.
#pragma once

#include <cstdint>
#include <optional>

namespace cyb {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

inline std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// `value` rounded up to a multiple of `unit` (> 0).
inline std::optional<std::uint64_t> checked_round_up(std::uint64_t value,
                                                     std::uint64_t unit) noexcept {
  const std::uint64_t rest = value % unit;
  return rest == 0 ? std::optional(value) : checked_add(value, unit - rest);
}

/// [offset, offset + size) lies inside [0, total).
inline bool range_fits(std::uint64_t offset, std::uint64_t size, std::uint64_t total) noexcept {
  return offset <= total && size <= total - offset;
}

}  // namespace cyb
