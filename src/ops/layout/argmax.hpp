// Argmax: the lowest index of the maximum along one dimension, which is removed; i32.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct ArgmaxAttrs {
  std::int32_t dim;
  static ArgmaxAttrs from(const Attrs& a) { return {static_cast<std::int32_t>(a.i(0))}; }
  Attrs to_attrs() const { return {{std::int64_t{dim}}}; }
};

}  // namespace cyb
