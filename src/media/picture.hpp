// Pictures of PNG and JPEG files as they are stored: no colour management, no orientation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace cyb::media {

struct Picture {
  std::uint32_t width = 0, height = 0;
  std::uint32_t channels = 0;         // 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha
  std::uint32_t max = 255;            // the value of white: 255 or 65535
  std::vector<std::uint16_t> values;  // [height, width, channels]
};

/// True for bytes that begin as a PNG or JPEG file.
bool is_picture(std::span<const std::byte> bytes) noexcept;

/// A PNG (every depth and interlacing; palettes become RGB, grey below 8 bits is stretched to
/// 0..255) or a JPEG (grey or RGB, 8 bits, baseline or progressive). What libjpeg would repair is
/// an error. Errors: M01 to M04.
Result<Picture> decode_picture(std::span<const std::byte> bytes);

// Of decode_picture: one kind each.
Result<Picture> decode_png(std::span<const std::byte> bytes);
Result<Picture> decode_jpeg(std::span<const std::byte> bytes);

/// Errors: M02 for an empty side, M03 above the limits.
Result<void> check_picture_size(std::uint64_t width, std::uint64_t height);

/// An empty picture of that size. Errors: as check_picture_size; OutOfMemory.
Result<Picture> blank_picture(std::uint64_t width, std::uint64_t height, std::uint32_t channels,
                              std::uint32_t max);

}  // namespace cyb::media
