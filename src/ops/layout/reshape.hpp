// Reshape: the same row-major data under another shape; 0 copies a dimension, one -1 is inferred.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct ReshapeAttrs {
  std::vector<std::int64_t> shape;
  static ReshapeAttrs from(const Attrs& a) { return {a.list(0)}; }
  Attrs to_attrs() const { return {{shape}}; }
};

namespace layout {

/// Dimensions of x reshaped: 0 copies (unless allow_zero), one -1 is inferred. G04 or G10.
Result<std::vector<Dim>> reshaped(const TensorSpec& x, std::span<const Dim> shape, bool allow_zero);
/// As many anonymous dimensions as input k, a list, has elements; G10 where that is not known.
Result<std::vector<Dim>> unknown_dims(std::span<const TensorSpec> in, std::size_t k);
/// The dimensions that input k, a list, holds, none of them negative; unknown_dims() where its
/// values are not known.
Result<std::vector<Dim>> listed_dims(std::span<const TensorSpec> in, std::size_t k);
/// One output with the elements of x, so with its value too.
std::vector<TensorSpec> with_same_value(const TensorSpec& x, std::vector<Dim> dims);

}  // namespace layout
}  // namespace cyb
