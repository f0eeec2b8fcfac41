// Whether a value of any element type is NaN: integers never are.
#pragma once

#include <cmath>
#include <concepts>

namespace cyb {

template <class C>
bool is_nan(C v) noexcept {
  if constexpr (std::floating_point<C>) {
    return std::isnan(v);
  } else {
    return false;
  }
}

}  // namespace cyb
