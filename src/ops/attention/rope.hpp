// Rope: rotary position embedding (Su et al., arXiv 2104.09864).
#pragma once

#include "ops/op.hpp"

namespace cyb {

enum class RopeStyle : std::uint8_t {
  kNeox = 0,          // pairs (j, j + R/2) of the first R dims
  kGptj = 1,          // pairs (2j, 2j + 1)
  kProportional = 2,  // pairs (j, j + D/2), frequencies of D, the first R/2 of them
};

struct RopeAttrs {
  std::uint32_t head_dim;  // D
  std::uint32_t rope_dim;  // R, even, <= D
  float base;
  RopeStyle style;
  static RopeAttrs from(const Attrs& a) {
    return {a.u32(0), a.u32(1), a.f(2), static_cast<RopeStyle>(a.i(3))};
  }
  Attrs to_attrs() const {
    return {
        {std::int64_t{head_dim}, std::int64_t{rope_dim}, base, static_cast<std::int64_t>(style)}};
  }
};

/// f_j in f64, j = 0..R/2-1: freqs[j] if given, else base^(-2j/R) (base^(-2j/D) for kProportional).
std::vector<double> rope_frequencies(const RopeAttrs& attrs, std::span<const float> freqs);

}  // namespace cyb
