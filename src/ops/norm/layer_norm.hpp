// LayerNorm: (x - mean) / sqrt(variance + eps) · g + b over the last dimension, biased variance.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct LayerNormAttrs {
  float eps;
  static LayerNormAttrs from(const Attrs& a) { return {a.f(0)}; }
  Attrs to_attrs() const { return {{eps}}; }
};

}  // namespace cyb
