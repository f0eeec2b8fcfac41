// The steps, in order: channels, size, numbers, layout. Each says what the input takes when it
// cannot.
#include "media/picture_tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>

#include "base/half.hpp"
#include "media/media_error.hpp"
#include "media/resize.hpp"

namespace cyb::media {
namespace {

std::string dims_text(const Wanted& wanted) {
  std::vector<std::string> dims;
  for (const auto& dim : wanted.dims) dims.push_back(dim ? std::to_string(*dim) : "?");
  return fmt::format("{} [{}]", dtype_name(wanted.dtype), fmt::join(dims, ", "));
}

/// Where an input has its channels, height and width; with a batch of 1 in front at rank 4.
struct Places {
  std::size_t channels, height, width;
};

bool counts_channels(const std::optional<std::int64_t>& dim) {
  return dim && *dim >= 1 && *dim <= 4;
}

Result<Places> places_of(const Wanted& wanted, Layout layout) {
  const std::size_t rank = wanted.dims.size();
  if (rank != 3 && rank != 4)
    return fail(wrong_input(fmt::format("the input takes {}, no picture", dims_text(wanted))));
  if (rank == 4 && wanted.dims[0].value_or(1) != 1) {
    return fail(wrong_input(fmt::format("the input takes {}, {} pictures at once",
                                        dims_text(wanted), *wanted.dims[0])));
  }
  const std::size_t at = rank - 3;
  const Places first{at, at + 1, at + 2}, last{at + 2, at, at + 1};
  if (layout == Layout::kNchw) return first;
  if (layout == Layout::kNhwc) return last;
  const bool is_first = counts_channels(wanted.dims[at]),
             is_last = counts_channels(wanted.dims[at + 2]);
  if (is_first != is_last) return is_first ? first : last;
  return fail(wrong_input(fmt::format(
      "the input takes {}, which does not say where the channels are: --image-layout nchw or nhwc",
      dims_text(wanted))));
}

/// Values of one pixel as f32 of 0..255.
void split_pixel(const Picture& picture, std::size_t at, Channels channels, float* out) {
  const std::uint16_t* pixel = picture.values.data() + at * picture.channels;
  const auto value = [&](std::size_t c) {
    return picture.max == 255 ? static_cast<float>(pixel[c])
                              : static_cast<float>(pixel[c]) / 257.0F;
  };
  const bool colour = picture.channels >= 3;
  switch (channels) {
    case Channels::kAsStored:
      for (std::size_t c = 0; c < picture.channels; ++c) out[c] = value(c);
      return;
    case Channels::kGray:
      out[0] =
          colour ? (299.0F * value(0) + 587.0F * value(1) + 114.0F * value(2)) / 1000.0F : value(0);
      return;
    case Channels::kRgb:
    case Channels::kBgr:
      for (std::size_t c = 0; c < 3; ++c)
        out[channels == Channels::kRgb ? c : 2 - c] = value(colour ? c : 0);
      return;
  }
}

std::size_t channels_out(const Picture& picture, Channels channels) {
  if (channels == Channels::kAsStored) return picture.channels;
  return channels == Channels::kGray ? 1 : 3;
}

Planes planes_of(const Picture& picture, Channels channels) {
  const std::size_t pixels = std::size_t{picture.width} * picture.height;
  Planes out{channels_out(picture, channels), picture.height, picture.width, {}};
  out.values.resize(out.channels * pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    std::array<float, 4> pixel{};
    split_pixel(picture, i, channels, pixel.data());
    for (std::size_t c = 0; c < out.channels; ++c) out.values[c * pixels + i] = pixel[c];
  }
  return out;
}

Region region_of(const Planes& planes, const PictureOptions& options) {
  Region all{0, 0, static_cast<double>(planes.width), static_cast<double>(planes.height)};
  if (!options.crop) return all;
  const double scale = std::min(all.width / options.size->width, all.height / options.size->height);
  const double width = scale * options.size->width, height = scale * options.size->height;
  return {(all.width - width) / 2, (all.height - height) / 2, width, height};
}

Result<void> check_numbers(const PictureOptions& options, const Wanted& wanted,
                           std::size_t channels) {
  for (const auto* list : {&options.mean, &options.deviation}) {
    if (list->size() > 1 && list->size() != channels) {
      return fail(
          wrong_channels(fmt::format("{} {} for {} channels", list->size(),
                                     list == &options.mean ? "means" : "deviations", channels)));
    }
  }
  const bool real = wanted.dtype == DType::kF32 || wanted.dtype == DType::kF16;
  const bool plain = options.scale == 1 && options.mean.empty() && options.deviation.empty();
  if (real || (wanted.dtype == DType::kU8 && plain && !options.size)) return {};
  if (wanted.dtype != DType::kU8)
    return fail(wrong_input(fmt::format("the input takes {}, no picture", dims_text(wanted))));
  return fail(wrong_input("the input takes bytes: no size, scale, mean or deviation fits it"));
}

double per_channel(const std::vector<double>& list, std::size_t c, double without) {
  if (list.empty()) return without;
  return list.size() == 1 ? list[0] : list[c];
}

Result<void> store(std::byte* at, DType dtype, double value) {
  if (dtype == DType::kF32) {
    const auto number = static_cast<float>(value);
    std::memcpy(at, &number, sizeof number);
  } else if (dtype == DType::kF16) {
    const std::uint16_t number = f32_to_f16(static_cast<float>(value));
    std::memcpy(at, &number, sizeof number);
  } else {
    if (value != std::floor(value))
      return fail(wrong_input("the input takes bytes, the picture has values between them"));
    *at = static_cast<std::byte>(static_cast<std::uint8_t>(value));
  }
  return {};
}

Result<void> want(const Wanted& wanted, std::size_t axis, std::size_t have, const char* what,
                  bool channels) {
  const auto& dim = wanted.dims[axis];
  if (!dim || static_cast<std::uint64_t>(*dim) == have) return {};
  std::string text =
      fmt::format("{} {}, the input takes {}: {}", what, have, *dim, dims_text(wanted));
  if (channels) return fail(wrong_channels(text + " (--image-channels gray, rgb or bgr converts)"));
  return fail(wrong_size(text + " (--image-size WxH resizes)"));
}

Result<MadeTensor> filled(const Planes& planes, const PictureOptions& options, const Wanted& wanted,
                          const Places& places) {
  MadeTensor out{wanted.dtype, {}, {}};
  std::vector<std::int64_t> dims(wanted.dims.size(), 1);
  dims[places.channels] = static_cast<std::int64_t>(planes.channels);
  dims[places.height] = static_cast<std::int64_t>(planes.height);
  dims[places.width] = static_cast<std::int64_t>(planes.width);
  out.shape = Shape(std::span<const std::int64_t>(dims));
  const std::size_t size =
      static_cast<std::size_t>(tensor_bytes(wanted.dtype, out.shape).value_or(0));
  out.bytes.resize(size);
  const std::size_t pixels = planes.height * planes.width, item = size / (pixels * planes.channels);
  const bool channels_last = places.channels > places.width;
  for (std::size_t c = 0; c < planes.channels; ++c) {
    const double mean = per_channel(options.mean, c, 0),
                 deviation = per_channel(options.deviation, c, 1);
    for (std::size_t i = 0; i < pixels; ++i) {
      const double value =
          (static_cast<double>(planes.values[c * pixels + i]) * options.scale - mean) / deviation;
      const std::size_t at = channels_last ? i * planes.channels + c : c * pixels + i;
      CYB_TRY(store(out.bytes.data() + at * item, wanted.dtype, value));
    }
  }
  return out;
}

}  // namespace

Result<MadeTensor> picture_tensor(const Picture& picture, const PictureOptions& options,
                                  const Wanted& wanted) {
  CYB_ASSIGN(const Places places, places_of(wanted, options.layout));
  const std::size_t channels = channels_out(picture, options.channels);
  CYB_TRY(check_numbers(options, wanted, channels));
  CYB_TRY(want(wanted, places.channels, channels, "channels:", true));
  if (options.size) CYB_TRY(check_picture_size(options.size->width, options.size->height));
  CYB_TRY(want(wanted, places.height, options.size ? options.size->height : picture.height,
               "height", false));
  CYB_TRY(want(wanted, places.width, options.size ? options.size->width : picture.width, "width",
               false));
  try {
    Planes planes = planes_of(picture, options.channels);
    if (options.size)
      planes =
          resize(planes, region_of(planes, options), options.size->height, options.size->width);
    return filled(planes, options, wanted, places);
  } catch (const std::bad_alloc&) {
    return fail(
        out_of_memory("media", std::uint64_t{picture.width} * picture.height * channels * 8, 0));
  }
}

Result<MadeTensor> sound_tensor(const Sound& sound, std::optional<std::uint32_t> rate,
                                const Wanted& wanted) {
  const std::size_t rank = wanted.dims.size();
  if (wanted.dtype != DType::kF32 || rank == 0 || rank > 3 ||
      (rank == 3 && wanted.dims[0].value_or(1) != 1))
    return fail(wrong_input(fmt::format("the input takes {}, no sound", dims_text(wanted))));
  if (rate && *rate != sound.rate)
    return fail(wrong_size(fmt::format("the sound has {} Hz, not {}", sound.rate, *rate)));
  const std::int64_t rows = rank == 1 ? 1 : wanted.dims[rank - 2].value_or(1);
  if (rows != static_cast<std::int64_t>(sound.channels)) {
    return fail(wrong_channels(fmt::format("channels: {}, the input takes {}: {}", sound.channels,
                                           rows, dims_text(wanted))));
  }
  const std::size_t n = sound.length();
  const auto& length = wanted.dims[rank - 1];
  if (length && static_cast<std::uint64_t>(*length) != n) {
    return fail(wrong_size(
        fmt::format("{} samples, the input takes {}: {}", n, *length, dims_text(wanted))));
  }
  std::vector<std::int64_t> dims(rank, 1);
  dims[rank - 1] = static_cast<std::int64_t>(n);
  if (rank > 1) dims[rank - 2] = rows;
  MadeTensor out{DType::kF32, Shape(std::span<const std::int64_t>(dims)), {}};
  out.bytes.resize(sound.samples.size() * sizeof(float));
  for (std::size_t i = 0; i < sound.samples.size(); ++i) {
    const std::size_t at = i % sound.channels * n + i / sound.channels;
    std::memcpy(out.bytes.data() + at * sizeof(float), &sound.samples[i], sizeof(float));
  }
  return out;
}

}  // namespace cyb::media
