// Gather: y = x with `axis` replaced by the dimensions of the i32 indices; out of range is an
// error.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct GatherAttrs {
  std::int32_t axis;
  static GatherAttrs from(const Attrs& a) { return {static_cast<std::int32_t>(a.i(0))}; }
  Attrs to_attrs() const { return {{std::int64_t{axis}}}; }
};

}  // namespace cyb
