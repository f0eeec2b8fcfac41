// Transpose: y = x with dimensions permuted; an empty permutation swaps the last two.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct TransposeAttrs {
  std::vector<std::int64_t> perm;
  static TransposeAttrs from(const Attrs& a) { return {a.list(0)}; }
  Attrs to_attrs() const { return {{perm}}; }
};

}  // namespace cyb
