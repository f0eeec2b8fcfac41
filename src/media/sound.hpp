// Sound of WAV files: the samples as they are stored, as f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace cyb::media {

struct Sound {
  std::uint32_t rate = 0;  // samples per second and channel
  std::uint32_t channels = 0;
  std::vector<float> samples;  // [n, channels]; integers are divided by their full scale: -1..1
  std::size_t length() const noexcept { return channels == 0 ? 0 : samples.size() / channels; }
};

/// True for bytes that begin as a WAV file.
bool is_sound(std::span<const std::byte> bytes) noexcept;

/// RIFF WAVE with integers of 8 (unsigned), 16, 24 or 32 bits or floats of 32 or 64, plain or
/// extensible (Microsoft, "Multiple channel audio data and WAVE files"). A chunk that ends after
/// the file is an error, also that of the samples. Errors: M01 to M04; NonFinite.
Result<Sound> decode_wav(std::span<const std::byte> bytes);

}  // namespace cyb::media
