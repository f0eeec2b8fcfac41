// Fuzzes the readers of pictures and sound; what they accept must be whole, and goes on into a
// tensor.
#include <cstddef>
#include <cstdint>
#include <span>

#include "media/picture_tensor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cyb;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto picture = media::decode_picture(bytes);
  if (picture) {
    const std::size_t n = std::size_t{picture->width} * picture->height * picture->channels;
    if (n == 0 || picture->values.size() != n) __builtin_trap();
    if (n < 100000) {
      media::PictureOptions options;
      options.channels = media::Channels::kRgb;
      options.size = {7, 5};
      const media::Wanted wanted{DType::kF32, {1, 3, std::nullopt, std::nullopt}};
      if (!media::picture_tensor(*picture, options, wanted)) __builtin_trap();
    }
  }
  const auto sound = media::decode_wav(bytes);
  if (sound && (sound->channels == 0 || sound->samples.size() % sound->channels != 0))
    __builtin_trap();
  return 0;
}
