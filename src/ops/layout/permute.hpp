// Permute: y = x with dimension i of y taken from dimension dims[i] of x; dims is complete.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct PermuteAttrs {
  std::vector<std::int64_t> dims;
  static PermuteAttrs from(const Attrs& a) { return {a.list(0)}; }
  Attrs to_attrs() const { return {{dims}}; }
};

}  // namespace cyb
