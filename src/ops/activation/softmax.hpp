// Softmax over one dimension: e^(x - max) / sum.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct SoftmaxAttrs {
  std::int32_t dim;
  static SoftmaxAttrs from(const Attrs& a) { return {static_cast<std::int32_t>(a.i(0))}; }
  Attrs to_attrs() const { return {{std::int64_t{dim}}}; }
};

}  // namespace cyb
