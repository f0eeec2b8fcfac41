// Reshape: the same row-major data under another shape; 0 copies a dimension, one -1 is inferred.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct ReshapeAttrs {
  std::vector<std::int64_t> shape;
  static ReshapeAttrs from(const Attrs& a) { return {a.list(0)}; }
  Attrs to_attrs() const { return {{shape}}; }
};

}  // namespace cyb
