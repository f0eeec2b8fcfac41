// Shape: up to 8 concrete dimensions, row-major, outermost first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "tensor/dtype.hpp"

namespace cyb {

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  /// dims.size() <= kMaxRank (callers check files' ranks first).
  explicit Shape(std::span<const std::int64_t> dims) noexcept : rank_(dims.size()) {
    for (std::size_t i = 0; i < rank_; ++i) dims_[i] = dims[i];
  }

  std::size_t rank() const noexcept { return rank_; }
  std::int64_t operator[](std::size_t i) const noexcept { return dims_[i]; }
  std::int64_t& operator[](std::size_t i) noexcept { return dims_[i]; }
  std::int64_t back() const noexcept { return dims_[rank_ - 1]; }
  std::span<const std::int64_t> dims() const noexcept { return {dims_.data(), rank_}; }
  bool operator==(const Shape& other) const noexcept {
    for (std::size_t i = 0; i < rank_ && rank_ == other.rank_; ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return rank_ == other.rank_;
  }

  /// Product of all dimensions; nullopt on overflow or a negative dimension. 1 for rank 0.
  std::optional<std::uint64_t> elements() const noexcept;
  /// Product without checks, for shapes that were validated; 0 where a dimension is, whatever the
  /// others are.
  std::int64_t count() const noexcept {
    std::uint64_t n = 1;
    for (std::size_t i = 0; i < rank_; ++i) n *= static_cast<std::uint64_t>(dims_[i]);
    return static_cast<std::int64_t>(n);
  }
  /// "[2, 3]".
  std::string text() const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

/// Bytes of a tensor; nullopt on overflow or where the last dimension is not a multiple of the
/// block.
std::optional<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape) noexcept;

}  // namespace cyb
