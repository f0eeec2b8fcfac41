// Kinds of pictures by their first bytes, and the limits of their size.
#include "media/picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

#include "base/limits.hpp"
#include "media/media_error.hpp"

namespace cyb::media {
namespace {

constexpr std::array kPng = {0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A};
constexpr std::array kJpeg = {0xFF, 0xD8, 0xFF};

bool begins(std::span<const std::byte> bytes, std::span<const int> with) noexcept {
  return bytes.size() >= with.size() &&
         std::equal(with.begin(), with.end(), bytes.begin(),
                    [](int want, std::byte got) { return static_cast<std::byte>(want) == got; });
}

}  // namespace

bool is_picture(std::span<const std::byte> bytes) noexcept {
  return begins(bytes, kPng) || begins(bytes, kJpeg);
}

Result<Picture> decode_picture(std::span<const std::byte> bytes) {
  if (begins(bytes, kPng)) return decode_png(bytes);
  if (begins(bytes, kJpeg)) return decode_jpeg(bytes);
  return fail(unknown_kind("not a PNG or JPEG file"));
}

Result<void> check_picture_size(std::uint64_t width, std::uint64_t height) {
  if (width == 0 || height == 0) return fail(damaged("a picture without pixels"));
  if (width > kMaxPictureSide || height > kMaxPictureSide || width * height > kMaxPicturePixels) {
    return fail(too_large(fmt::format("{} x {} pixels, at most {} in all and {} along a side",
                                      width, height, kMaxPicturePixels, kMaxPictureSide)));
  }
  return {};
}

Result<Picture> blank_picture(std::uint64_t width, std::uint64_t height, std::uint32_t channels,
                              std::uint32_t max) {
  CYB_TRY(check_picture_size(width, height));
  Picture out{
      static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), channels, max, {}};
  const std::uint64_t n = width * height * channels;
  try {
    out.values.resize(static_cast<std::size_t>(n));
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory("media", n * sizeof(std::uint16_t), 0));
  }
  return out;
}

}  // namespace cyb::media
