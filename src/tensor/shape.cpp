// Shape arithmetic: products and byte sizes that cannot overflow unnoticed.
#include "tensor/shape.hpp"

#include "base/checked.hpp"

namespace cyb {

std::optional<std::uint64_t> Shape::elements() const noexcept {
  std::uint64_t product = 1;
  bool overflow = false, empty = false;
  for (const std::int64_t dim : dims()) {
    if (dim < 0) return std::nullopt;
    empty |= dim == 0;
    overflow |= __builtin_mul_overflow(product, static_cast<std::uint64_t>(dim), &product);
  }
  if (empty) return 0;  // whatever the others are
  if (overflow) return std::nullopt;
  return product;
}

std::string Shape::text() const {
  std::string out = "[";
  for (std::size_t i = 0; i < rank_; ++i) {
    if (i != 0) out += ", ";
    out += std::to_string(dims_[i]);
  }
  return out + "]";
}

std::optional<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape) noexcept {
  const FormatInfo& format = format_info(dtype);
  const auto n = shape.elements();
  if (!n) return std::nullopt;
  if (format.block_values == 1) return checked_mul(*n, format.block_bytes);
  if (shape.rank() == 0 || shape.back() % format.block_values != 0) return std::nullopt;
  return checked_mul(*n / format.block_values, format.block_bytes);
}

}  // namespace cyb
