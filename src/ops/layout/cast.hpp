// Cast: another dtype. To integers: truncation, saturating (NaN gives 0); to f16: nearest even.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct CastAttrs {
  DType dtype;
  static CastAttrs from(const Attrs& a) { return {static_cast<DType>(a.i(0))}; }
  Attrs to_attrs() const { return {{static_cast<std::int64_t>(dtype)}}; }
};

}  // namespace cyb
