// Constant: a tensor stored in the graph itself; row-major bytes of its dtype.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct ConstantAttrs {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
  static ConstantAttrs from(const Attrs& a) {
    return {static_cast<DType>(a.i(0)), a.list(1), a.bytes(2)};
  }
  Attrs to_attrs() const { return {{static_cast<std::int64_t>(dtype), shape, bytes}}; }
  /// Of f32 values; values.size() is the product of `shape`.
  static ConstantAttrs of(std::span<const float> values, const Shape& shape);
};

}  // namespace cyb
