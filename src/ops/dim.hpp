// Dim and TensorSpec: symbolic shapes. A dimension is a constant, a linear expression over symbols,
// or anonymous.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb {

class Dim {
 public:
  /// Constant 0.
  Dim() = default;
  Dim(std::int64_t value)
      : constant_(value) {}  // NOLINT(google-explicit-constructor): dims read as numbers
  static Dim symbol(std::uint32_t id) {
    Dim d;
    d.terms_ = {{id, 1}};
    return d;
  }
  /// A dimension that equals nothing but itself.
  static Dim anonymous() {
    Dim d;
    d.anonymous_ = true;
    return d;
  }

  bool is_constant() const noexcept { return !anonymous_ && terms_.empty(); }
  bool is_anonymous() const noexcept { return anonymous_; }
  std::int64_t constant() const noexcept { return constant_; }
  /// (symbol, coefficient) in ascending symbol order, no zero coefficients.
  std::span<const std::pair<std::uint32_t, std::int64_t>> terms() const noexcept { return terms_; }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, std::int64_t k);
  friend Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }
  /// Equality by normal form; anonymous dimensions are never equal.
  friend bool operator==(const Dim& a, const Dim& b) noexcept {
    return !a.anonymous_ && !b.anonymous_ && a.constant_ == b.constant_ && a.terms_ == b.terms_;
  }
  /// True where a and b can never be equal (both constant and different).
  friend bool certainly_differ(const Dim& a, const Dim& b) noexcept {
    return a.is_constant() && b.is_constant() && a.constant_ != b.constant_;
  }

  /// The dimension divided by k; nullopt where k <= 0 or a coefficient is not a multiple of k.
  std::optional<Dim> divided_by(std::int64_t k) const;
  /// Value with symbol i bound to values[i]; nullopt when anonymous, unbound or overflowing.
  std::optional<std::int64_t> eval(std::span<const std::int64_t> values) const noexcept;
  /// "S", "2*B+1", "?"; `names` may be shorter than the symbols used (then "s3").
  std::string text(std::span<const std::string> names) const;

 private:
  std::int64_t constant_ = 0;
  std::vector<std::pair<std::uint32_t, std::int64_t>> terms_;
  bool anonymous_ = false;
};

// Symbols 0, 1, 2 of every graph in memory: batch B, new positions S, past positions P. T is P + S.
inline constexpr std::uint32_t kSymbolB = 0;
inline constexpr std::uint32_t kSymbolS = 1;
inline constexpr std::uint32_t kSymbolP = 2;

/// "[B, S, 64]".
std::string dims_text(std::span<const Dim> dims, std::span<const std::string> names = {});

struct TensorSpec {
  DType dtype = DType::kF32;
  std::vector<Dim> dims;
  bool absent = false;  // an optional input that is not given
  // Elements of a small integer tensor of rank <= 1 where they are known at load, symbols included.
  std::optional<std::vector<Dim>> value = std::nullopt;

  static TensorSpec none() { return {DType::kF32, {}, true, std::nullopt}; }
  std::size_t rank() const noexcept { return dims.size(); }
  static TensorSpec of(DType dtype, const Shape& shape) {
    return {dtype, std::vector<Dim>(shape.dims().begin(), shape.dims().end()), false, std::nullopt};
  }
  /// Concrete shape with symbols bound; nullopt where a dimension has no value or is negative.
  std::optional<Shape> bind(std::span<const std::int64_t> symbols) const noexcept;
  std::string text(std::span<const std::string> names = {}) const;
};

}  // namespace cyb
