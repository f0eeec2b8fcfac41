// Planes of f32 and their resizing.
#pragma once

#include <cstddef>
#include <vector>

namespace cyb::media {

/// Channels of a picture one after the other: values [channels, height, width].
struct Planes {
  std::size_t channels = 0, height = 0, width = 0;
  std::vector<float> values;
};

/// The part of a picture, in its pixels, that a resize reads.
struct Region {
  double left = 0, top = 0, width = 0, height = 0;
};

/// The triangle filter: output o reads inputs around (o + 1/2) · step − 1/2 + offset within
/// max(step, 1), weights normalised to 1 (Pillow's Resample.c, BILINEAR).
Planes resize(const Planes& from, const Region& region, std::size_t height, std::size_t width);

}  // namespace cyb::media
