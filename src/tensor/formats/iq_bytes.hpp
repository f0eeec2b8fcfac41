// What the IQ formats share: their code books and the coding of signs. Internal to formats.
#pragma once

#include <bit>
#include <cstdint>

namespace cyb::formats {

namespace {
#include "tensor/formats/iq_grids.inc"
}  // namespace

/// Seven stored signs; the eighth makes their number even.
inline unsigned with_parity(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7;
}

inline float sign_of(unsigned signs, unsigned j) noexcept {
  return (signs >> j & 1) != 0 ? -1.0f : 1.0f;
}

}  // namespace cyb::formats
