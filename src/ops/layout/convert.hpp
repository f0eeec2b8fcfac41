// Conversion of one number to another dtype's type of computation: Cast's rules.
#pragma once

#include <limits>
#include <type_traits>

#include "ops/math/is_nan.hpp"

namespace cyb::convert {

/// From floats: truncation, saturating; NaN gives 0. From integers: the low bits, as ONNX and torch
/// have it.
template <class To, class From>
To to_integer(From v) noexcept {
  if constexpr (std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    if (is_nan(v)) return 0;
    // 2^digits is exact in every float; the largest integer itself may not be.
    constexpr auto kEnd = static_cast<From>(To{1} << (Limits::digits - 1)) * From{2};
    if (v >= kEnd) return Limits::max();
    if (v <= static_cast<From>(Limits::lowest())) return Limits::lowest();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From>
To to(From v) noexcept {
  if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(v);
  } else {
    return to_integer<To>(v);
  }
}

}  // namespace cyb::convert
