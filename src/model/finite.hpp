// FiniteCheck: finds NaN and Inf in stored tensors (F42), and invalid ternary codes (F30), from the
// bytes alone: float elements, and the block scales d, dmin and m. Nothing is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.hpp"
#include "tensor/dtype.hpp"

namespace cyb {

class FiniteCheck {
 public:
  FiniteCheck(std::string tensor, DType dtype);

  /// Consecutive bytes of the tensor, cut anywhere. Errors: F42 with the first element of the block
  /// that holds the value, F30.
  Result<void> update(std::span<const std::byte> bytes);

 private:
  /// Whole blocks only.
  Result<void> blocks(std::span<const std::byte> bytes);
  Error non_finite_at(std::uint64_t block) const;

  std::string tensor_;
  DType dtype_;
  std::size_t block_bytes_ = 1;
  std::uint64_t blocks_done_ = 0;
  std::size_t carry_size_ = 0;
  std::byte carry_[256] = {};  // the start of a block whose rest has not come yet
};

}  // namespace cyb
