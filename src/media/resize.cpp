// Resizing as two passes, rows then columns; the weights of an axis are computed once.
#include "media/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cyb::media {
namespace {

/// What one output of an axis reads: weights of the inputs from `first` on.
struct Taps {
  std::size_t first = 0;
  std::vector<double> weights;
};

std::vector<Taps> taps_of(std::size_t in, std::size_t out, double offset, double length) {
  const double step = length / static_cast<double>(out), radius = std::max(step, 1.0);
  std::vector<Taps> taps(out);
  for (std::size_t o = 0; o < out; ++o) {
    const double centre = offset + (static_cast<double>(o) + 0.5) * step;
    const auto begin = static_cast<std::int64_t>(std::max(0.0, std::floor(centre - radius + 0.5)));
    const auto end = static_cast<std::int64_t>(
        std::min(static_cast<double>(in), std::floor(centre + radius + 0.5)));
    double sum = 0;
    taps[o].first = static_cast<std::size_t>(begin);
    for (std::int64_t i = begin; i < end; ++i) {
      const double distance = std::abs((static_cast<double>(i) + 0.5 - centre) / radius);
      taps[o].weights.push_back(std::max(0.0, 1.0 - distance));
      sum += taps[o].weights.back();
    }
    for (double& weight : taps[o].weights) weight = sum > 0 ? weight / sum : 0;
  }
  return taps;
}

/// One output of a line whose values lie `stride` apart.
float filtered(const float* line, std::size_t stride, const Taps& taps) {
  double sum = 0;
  for (std::size_t t = 0; t < taps.weights.size(); ++t)
    sum += taps.weights[t] * static_cast<double>(line[(taps.first + t) * stride]);
  return static_cast<float>(sum);
}

}  // namespace

Planes resize(const Planes& from, const Region& region, std::size_t height, std::size_t width) {
  const std::vector<Taps> across = taps_of(from.width, width, region.left, region.width),
                          down = taps_of(from.height, height, region.top, region.height);
  Planes half{from.channels, from.height, width, {}};
  half.values.resize(from.channels * from.height * width);
  for (std::size_t row = 0; row < from.channels * from.height; ++row) {
    const float* line = from.values.data() + row * from.width;
    for (std::size_t x = 0; x < width; ++x)
      half.values[row * width + x] = filtered(line, 1, across[x]);
  }
  Planes out{from.channels, height, width, {}};
  out.values.resize(from.channels * height * width);
  for (std::size_t c = 0; c < from.channels; ++c) {
    const float* plane = half.values.data() + c * from.height * width;
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t x = 0; x < width; ++x)
        out.values[(c * height + y) * width + x] = filtered(plane + x, width, down[y]);
    }
  }
  return out;
}

}  // namespace cyb::media
