// Vectors of four lanes by the compiler's vector types; rounding to the nearest code by adding and
// taking away 1.5 * 2^23 (codes are far below 2^22), ties to even.
#include "tensor/formats/scale_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cyb::formats {
namespace {

using Lanes = float __attribute__((vector_size(16)));

Lanes lanes(float value) noexcept {
  return Lanes{value, value, value, value};
}
Lanes load4(const float* at) noexcept {
  Lanes out;
  std::memcpy(&out, at, sizeof(out));
  return out;
}
void store4(float* at, Lanes value) noexcept {
  std::memcpy(at, &value, sizeof(value));
}
float total(Lanes v) noexcept {
  return (v[0] + v[1]) + (v[2] + v[3]);
}

struct Rounding {
  Lanes lo, hi;
  explicit Rounding(CodeRange range) noexcept : lo(lanes(range.lo)), hi(lanes(range.hi)) {}
  Lanes operator()(Lanes v) const noexcept {
    const Lanes magic = lanes(12582912.0f);
    v = v < lo ? lo : v;
    v = v > hi ? hi : v;
    return (v + magic) - magic;
  }
};

float inverse_of(float scale) noexcept {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

struct SymmetricSums {
  float xq = 0, qq = 0;
  /// How much less than sum w*x*x the error is with the best scale for these codes.
  float gain() const noexcept { return qq > 0 ? xq * xq / qq : 0.0f; }
  float scale() const noexcept { return qq > 0 ? xq / qq : 0.0f; }
};

SymmetricSums symmetric_sums(const Run& run, CodeRange range, float inverse) noexcept {
  const Rounding rounded(range);
  Lanes xq = lanes(0), qq = lanes(0);
  const Lanes factor = lanes(inverse);
  for (std::size_t i = 0; i < run.n; i += 4) {
    const Lanes x = load4(run.x + i), w = load4(run.w + i);
    const Lanes q = rounded(x * factor);
    xq += w * x * q;
    qq += w * q * q;
  }
  return {total(xq), total(qq)};
}

struct CodeLanes {
  Lanes w = lanes(0), x = lanes(0), q = lanes(0), xq = lanes(0), qq = lanes(0);
  void add(Lanes weight, Lanes value, Lanes code) noexcept {
    const Lanes wq = weight * code;
    w += weight;
    x += weight * value;
    q += wq;
    xq += wq * value;
    qq += wq * code;
  }
  CodeSums sums() const noexcept { return {total(w), total(x), total(q), total(xq), total(qq)}; }
};

CodeSums affine_sums(const Run& run, float hi, float inverse, float lowest) noexcept {
  const Rounding rounded({0, hi});
  CodeLanes sums;
  const Lanes factor = lanes(inverse), base = lanes(lowest);
  for (std::size_t i = 0; i < run.n; i += 4) {
    const Lanes x = load4(run.x + i), w = load4(run.w + i);
    sums.add(w, x, rounded((x - base) * factor));
  }
  return sums.sums();
}

}  // namespace

float symmetric_error(const Run& run, CodeRange range, float scale) noexcept {
  const Rounding rounded(range);
  const Lanes factor = lanes(inverse_of(scale)), step = lanes(scale);
  Lanes sum = lanes(0);
  for (std::size_t i = 0; i < run.n; i += 4) {
    const Lanes x = load4(run.x + i);
    const Lanes e = x - step * rounded(x * factor);
    sum += load4(run.w + i) * e * e;
  }
  return total(sum);
}

float affine_error(const Run& run, CodeRange range, float scale, float min) noexcept {
  const Rounding rounded(range);
  const Lanes factor = lanes(inverse_of(scale)), step = lanes(scale), shift = lanes(min);
  Lanes sum = lanes(0);
  for (std::size_t i = 0; i < run.n; i += 4) {
    const Lanes x = load4(run.x + i) + shift;
    const Lanes e = x - step * rounded(x * factor);
    sum += load4(run.w + i) * e * e;
  }
  return total(sum);
}

void symmetric_codes(const Run& run, CodeRange range, float scale, float* codes) noexcept {
  affine_codes(run, range, scale, 0, codes);
}

void affine_codes(const Run& run, CodeRange range, float scale, float min, float* codes) noexcept {
  const Rounding rounded(range);
  const Lanes factor = lanes(inverse_of(scale)), shift = lanes(min);
  for (std::size_t i = 0; i < run.n; i += 4)
    store4(codes + i, rounded((load4(run.x + i) + shift) * factor));
}

CodeSums code_sums(const Run& run, const float* codes) noexcept {
  CodeLanes sums;
  for (std::size_t i = 0; i < run.n; i += 4)
    sums.add(load4(run.w + i), load4(run.x + i), load4(codes + i));
  return sums.sums();
}

AffineFit solve_affine(const CodeSums& s, bool non_negative) noexcept {
  const float det = s.w * s.qq - s.q * s.q;
  AffineFit fit;
  if (det > 0) {
    fit.scale = (s.w * s.xq - s.x * s.q) / det;
    fit.min = (s.q * s.xq - s.qq * s.x) / det;
  }
  if (!(det > 0) || (non_negative && fit.min < 0)) {
    fit.min = 0;
    fit.scale = s.qq > 0 ? s.xq / s.qq : 0.0f;
  }
  // sum w*(s*q - m - x)^2 without sum w*x*x
  const float a = fit.scale, m = fit.min;
  fit.error = a * a * s.qq + m * m * s.w + 2 * m * s.x - 2 * a * s.xq - 2 * a * m * s.q;
  return fit;
}

float best_scale(const Run& run, CodeRange range, int n_steps, float step) noexcept {
  float extreme = 0;
  for (std::size_t i = 0; i < run.n; ++i) {
    if (std::fabs(run.x[i]) > std::fabs(extreme)) extreme = run.x[i];
  }
  if (extreme == 0) return 0;
  SymmetricSums best;
  const auto attempt = [&](float inverse) {
    const SymmetricSums sums = symmetric_sums(run, range, inverse);
    if (sums.gain() > best.gain()) best = sums;
  };
  for (int k = -n_steps; k <= n_steps; ++k) {
    const float shift = step * static_cast<float>(k);
    if (range.hi + shift > 0.5f) attempt((range.hi + shift) / extreme);
    if (range.lo != -range.hi && range.lo - shift < -0.5f) attempt((range.lo - shift) / extreme);
  }
  for (int round = 0; round < 4; ++round) {
    const SymmetricSums again = symmetric_sums(run, range, inverse_of(best.scale()));
    if (!(again.gain() > best.gain())) break;
    best = again;
  }
  return best.scale();
}

AffineFit best_affine(const Run& run, float hi, bool non_negative) noexcept {
  float lowest = run.x[0], highest = run.x[0];
  for (std::size_t i = 1; i < run.n; ++i) {
    lowest = std::min(lowest, run.x[i]);
    highest = std::max(highest, run.x[i]);
  }
  if (non_negative) lowest = std::min(lowest, 0.0f);
  AffineFit best;
  if (!(highest > lowest)) {
    best.min = non_negative ? std::max(0.0f, -lowest) : -lowest;
    return best;
  }
  // The ends move in steps of a third of a code; few bits gain most from cutting them off.
  constexpr int kSteps = 4;
  const float unit = (highest - lowest) / hi / 3;
  bool first = true;
  for (int i = -1; i <= kSteps; ++i) {
    for (int j = -1; j <= kSteps; ++j) {
      const float from = lowest + unit * static_cast<float>(i);
      const float to = highest - unit * static_cast<float>(j);
      if (!(to > from)) continue;
      const AffineFit fit =
          solve_affine(affine_sums(run, hi, hi / (to - from), from), non_negative);
      if (!first && !(fit.error < best.error)) continue;
      best = fit;
      first = false;
    }
  }
  for (int round = 0; round < 6; ++round) {
    const CodeSums sums = affine_sums(run, hi, inverse_of(best.scale), -best.min);
    const AffineFit again = solve_affine(sums, non_negative);
    if (!(again.error < best.error)) break;
    best = again;
  }
  return best;
}

}  // namespace cyb::formats
