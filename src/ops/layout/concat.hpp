// Concat: joins tensors along one axis; the other dimensions are equal.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct ConcatAttrs {
  std::int32_t axis;
  static ConcatAttrs from(const Attrs& a) { return {static_cast<std::int32_t>(a.i(0))}; }
  Attrs to_attrs() const { return {{std::int64_t{axis}}}; }
};

}  // namespace cyb
