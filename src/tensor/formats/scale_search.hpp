// Least squares of one run of values against integer codes: x ~ s*q (symmetric) and x ~ s*q - m
// (affine). All sums in f32 over four lanes in a fixed order, so that the result is the same
// everywhere. Internal to formats.
#pragma once

#include <cstddef>

namespace cyb::formats {

/// Values with their weights; n is a multiple of 16.
struct Run {
  const float* x;
  const float* w;
  std::size_t n;
};

/// Codes lo..hi of a format.
struct CodeRange {
  float lo, hi;
};

struct AffineFit {
  float scale = 0, min = 0;  // x ~ scale*q - min
  float error = 0;
};

/// sum of w*(x - s*q)^2 with the nearest codes.
float symmetric_error(const Run& run, CodeRange range, float scale) noexcept;
/// The same for x ~ s*q - m.
float affine_error(const Run& run, CodeRange range, float scale, float min) noexcept;

/// The nearest codes, as floats.
void symmetric_codes(const Run& run, CodeRange range, float scale, float* codes) noexcept;
void affine_codes(const Run& run, CodeRange range, float scale, float min, float* codes) noexcept;

/// The scale of least error. `n_steps` scales on each side of the one that maps the value of
/// largest magnitude to the end of the range are tried, with both signs where the range is uneven,
/// and the best is fitted again until its codes stay.
float best_scale(const Run& run, CodeRange range, int n_steps, float step) noexcept;

/// Codes 0..hi. The ends of the range are tried at `n_steps`^2 places inside and outside of the
/// values, the best is fitted again until its codes stay. `non_negative`: min >= 0.
AffineFit best_affine(const Run& run, float hi, bool non_negative) noexcept;

/// Weighted sums over a run whose codes are known.
struct CodeSums {
  float w = 0, x = 0, q = 0, xq = 0, qq = 0;
};
CodeSums code_sums(const Run& run, const float* codes) noexcept;

/// The fit of least squares for codes that stay as they are. `error` is without sum of w*x*x.
AffineFit solve_affine(const CodeSums& sums, bool non_negative) noexcept;

}  // namespace cyb::formats
