// Split: cuts a tensor along one axis into parts of given sizes, one output per size.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct SplitAttrs {
  std::int32_t axis;
  std::vector<std::int64_t> sizes;
  static SplitAttrs from(const Attrs& a) { return {static_cast<std::int32_t>(a.i(0)), a.list(1)}; }
  Attrs to_attrs() const { return {{std::int64_t{axis}, sizes}}; }
};

}  // namespace cyb
