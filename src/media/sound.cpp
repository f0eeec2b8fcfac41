// WAV: chunks of a RIFF file; "fmt " must come before "data".
#include "media/sound.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/limits.hpp"
#include "base/reader.hpp"
#include "media/media_error.hpp"

namespace cyb::media {
namespace {

constexpr std::uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr std::size_t kHead = 12;  // "RIFF", size, "WAVE"
constexpr std::uint32_t kMaxChannels = 64;

struct Form {
  std::uint32_t tag = 0, channels = 0, rate = 0, bits = 0;
};

bool is_at(std::span<const std::byte> bytes, std::size_t at, const char* text) noexcept {
  return bytes.size() >= at + 4 && std::memcmp(bytes.data() + at, text, 4) == 0;
}

Result<Form> read_form(std::span<const std::byte> chunk) {
  BoundedReader reader(chunk);
  Form form;
  CYB_ASSIGN(form.tag, reader.read<std::uint16_t>());
  CYB_ASSIGN(form.channels, reader.read<std::uint16_t>());
  CYB_ASSIGN(form.rate, reader.read<std::uint32_t>());
  CYB_ASSIGN(const std::uint32_t bytes_per_second, reader.read<std::uint32_t>());
  CYB_ASSIGN(const std::uint16_t frame, reader.read<std::uint16_t>());
  CYB_ASSIGN(form.bits, reader.read<std::uint16_t>());
  if (form.tag == kExtensible) {
    CYB_TRY(reader.take(8));  // its own size, valid bits, places of the channels
    CYB_ASSIGN(form.tag, reader.read<std::uint16_t>());
  }
  static_cast<void>(bytes_per_second);  // what some writers leave wrong
  const bool integers =
      form.tag == kPcm && (form.bits == 8 || form.bits == 16 || form.bits == 24 || form.bits == 32);
  const bool floats = form.tag == kFloat && (form.bits == 32 || form.bits == 64);
  if (!integers && !floats) {
    return fail(unsupported(fmt::format(
        "a WAV of format {} with {} bits; integers (1) of 8, 16, 24 or 32 and floats (3) of 32 or "
        "64 are read",
        form.tag, form.bits)));
  }
  if (form.channels == 0 || form.channels > kMaxChannels || form.rate == 0 ||
      frame != form.channels * form.bits / 8) {
    return fail(damaged(fmt::format("WAV: {} channels, {} Hz, {} bits in frames of {} bytes",
                                    form.channels, form.rate, form.bits, frame)));
  }
  return form;
}

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float sample(const std::byte* at, const Form& form) noexcept {
  if (form.tag == kFloat)
    return form.bits == 32 ? load<float>(at) : static_cast<float>(load<double>(at));
  if (form.bits == 8) return (static_cast<float>(load<std::uint8_t>(at)) - 128.0F) / 128.0F;
  if (form.bits == 16) return static_cast<float>(load<std::int16_t>(at)) / 32768.0F;
  if (form.bits == 32) return static_cast<float>(load<std::int32_t>(at)) / 2147483648.0F;
  const auto low = load<std::uint16_t>(at);
  const auto high = load<std::int8_t>(at + 2);
  return static_cast<float>(high * 65536 + low) / 8388608.0F;
}

Result<Sound> read_samples(std::span<const std::byte> data, const Form& form) {
  const std::size_t bytes = form.bits / 8, frame = bytes * form.channels;
  if (data.size() % frame != 0) return fail(damaged("WAV: the last frame is cut off"));
  const std::size_t n = data.size() / bytes;
  if (n == 0) return fail(damaged("WAV: no samples"));
  if (n > kMaxSoundSamples)
    return fail(too_large(fmt::format("{} samples, at most {}", n, kMaxSoundSamples)));
  Sound out{form.rate, form.channels, std::vector<float>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    out.samples[i] = sample(data.data() + i * bytes, form);
    if (!std::isfinite(out.samples[i])) return fail(non_finite("wav", "samples", i));
  }
  return out;
}

}  // namespace

bool is_sound(std::span<const std::byte> bytes) noexcept {
  return is_at(bytes, 0, "RIFF") && is_at(bytes, 8, "WAVE");
}

Result<Sound> decode_wav(std::span<const std::byte> bytes) {
  if (!is_sound(bytes)) return fail(unknown_kind("not a WAV file"));
  Form form;
  for (std::size_t at = kHead; at + 8 <= bytes.size();) {
    const std::size_t size = load<std::uint32_t>(bytes.data() + at + 4);
    if (size > bytes.size() - at - 8) {
      return fail(
          damaged(fmt::format("WAV: a chunk of {} bytes, {} remain", size, bytes.size() - at - 8)));
    }
    const auto chunk = bytes.subspan(at + 8, size);
    if (is_at(bytes, at, "fmt ")) {
      auto read = read_form(chunk);
      if (!read && read.error().code() == "F11") return fail(damaged("WAV: the format is cut off"));
      CYB_ASSIGN(form, std::move(read));
    }
    if (is_at(bytes, at, "data")) {
      if (form.bits == 0) return fail(damaged("WAV: samples before their format"));
      return read_samples(chunk, form);
    }
    at += 8 + size + size % 2;
  }
  return fail(damaged("WAV: no samples"));
}

}  // namespace cyb::media
