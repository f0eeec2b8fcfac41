// Arithmetic, evaluation and text of symbolic dimensions. Overflow of a coefficient gives an
// anonymous dimension: equal to nothing, so no rule can be fooled by a wrapped number.
#include "ops/dim.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cyb {
namespace {

bool mul_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) noexcept {
  return __builtin_mul_overflow(a, b, &out);
}
bool add_overflows(std::int64_t a, std::int64_t b, std::int64_t& out) noexcept {
  return __builtin_add_overflow(a, b, &out);
}

std::string symbol_name(std::uint32_t id, std::span<const std::string> names) {
  return id < names.size() ? names[id] : fmt::format("s{}", id);
}

}  // namespace

Dim operator+(const Dim& a, const Dim& b) {
  if (a.anonymous_ || b.anonymous_) return Dim::anonymous();
  Dim out;
  if (add_overflows(a.constant_, b.constant_, out.constant_)) return Dim::anonymous();
  auto i = a.terms_.begin();
  auto j = b.terms_.begin();
  while (i != a.terms_.end() || j != b.terms_.end()) {
    if (j == b.terms_.end() || (i != a.terms_.end() && i->first < j->first)) {
      out.terms_.push_back(*i++);
    } else if (i == a.terms_.end() || j->first < i->first) {
      out.terms_.push_back(*j++);
    } else {
      std::int64_t sum = 0;
      if (add_overflows(i->second, j->second, sum)) return Dim::anonymous();
      if (sum != 0) out.terms_.emplace_back(i->first, sum);
      ++i;
      ++j;
    }
  }
  return out;
}

Dim operator*(const Dim& a, std::int64_t k) {
  if (a.anonymous_) return Dim::anonymous();
  Dim out;
  if (k == 0) return out;
  if (mul_overflows(a.constant_, k, out.constant_)) return Dim::anonymous();
  for (const auto& [id, coefficient] : a.terms_) {
    std::int64_t product = 0;
    if (mul_overflows(coefficient, k, product)) return Dim::anonymous();
    out.terms_.emplace_back(id, product);
  }
  return out;
}

std::optional<Dim> Dim::divided_by(std::int64_t k) const {
  if (anonymous_ || k <= 0 || constant_ % k != 0) return std::nullopt;
  Dim out(constant_ / k);
  for (const auto& [id, coefficient] : terms_) {
    if (coefficient % k != 0) return std::nullopt;
    out.terms_.emplace_back(id, coefficient / k);
  }
  return out;
}

std::optional<std::int64_t> Dim::eval(std::span<const std::int64_t> values) const noexcept {
  if (anonymous_) return std::nullopt;
  std::int64_t sum = constant_;
  for (const auto& [id, coefficient] : terms_) {
    std::int64_t product = 0;
    if (id >= values.size() || mul_overflows(values[id], coefficient, product)) return std::nullopt;
    if (add_overflows(sum, product, sum)) return std::nullopt;
  }
  return sum;
}

std::string Dim::text(std::span<const std::string> names) const {
  if (anonymous_) return "?";
  if (terms_.empty()) return fmt::format("{}", constant_);
  std::string out;
  for (const auto& [id, coefficient] : terms_) {
    if (!out.empty() && coefficient > 0) out += '+';
    if (coefficient == -1) out += '-';
    if (coefficient != 1 && coefficient != -1) out += fmt::format("{}*", coefficient);
    out += symbol_name(id, names);
  }
  if (constant_ != 0) out += fmt::format("{:+}", constant_);
  return out;
}

std::optional<Shape> TensorSpec::bind(std::span<const std::int64_t> symbols) const noexcept {
  if (dims.size() > Shape::kMaxRank) return std::nullopt;
  std::array<std::int64_t, Shape::kMaxRank> values{};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const auto bound = dims[i].eval(symbols);
    if (!bound || *bound < 0) return std::nullopt;
    values[i] = *bound;
  }
  return Shape(std::span(values.data(), dims.size()));
}

std::string dims_text(std::span<const Dim> dims, std::span<const std::string> names) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i != 0) out += ", ";
    out += dims[i].text(names);
  }
  return out + "]";
}

std::string TensorSpec::text(std::span<const std::string> names) const {
  return fmt::format("{} {}", dtype_name(dtype), dims_text(dims, names));
}

}  // namespace cyb
