// Gelu: mode 0 x/2·(1+erf(x/√2)); 1 x/2·(1+tanh(√(2/π)(x+0.044715x³))); 2 (quick) x·σ(1.702x).
#pragma once

#include "ops/op.hpp"

namespace cyb {

enum class GeluMode : std::uint8_t { kErf = 0, kTanh = 1, kQuick = 2 };

struct GeluAttrs {
  GeluMode mode;
  static GeluAttrs from(const Attrs& a) { return {static_cast<GeluMode>(a.i(0))}; }
  Attrs to_attrs() const { return {{static_cast<std::int64_t>(mode)}}; }
};

}  // namespace cyb
