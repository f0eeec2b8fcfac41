// RmsNorm: x / sqrt(mean(x^2) + eps) · g over the last dimension (Zhang and Sennrich, arXiv
// 1910.07467).
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct RmsNormAttrs {
  float eps;
  static RmsNormAttrs from(const Attrs& a) { return {a.f(0)}; }
  Attrs to_attrs() const { return {{eps}}; }
};

}  // namespace cyb
