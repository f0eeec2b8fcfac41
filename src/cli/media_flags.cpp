// Texts of the flags to options of media/.
#include "cli/media_flags.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxRate = 1000000;

/// "0.5" or "1/255".
std::optional<double> fraction(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return parse_real(text);
  const auto above = parse_real(text.substr(0, slash)), below = parse_real(text.substr(slash + 1));
  if (!above || !below || *below == 0) return std::nullopt;
  return *above / *below;
}

Result<std::vector<double>> numbers(const char* flag, const std::optional<std::string>& text) {
  std::vector<double> out;
  if (!text) return out;
  for (const std::string_view item : split_list(*text)) {
    const auto number = fraction(item);
    if (!number)
      return fail(usage_error(fmt::format("{} {}: \"{}\" is no number", flag, *text, item)));
    out.push_back(*number);
  }
  return out;
}

template <class T>
struct Choice {
  const char* name;
  T value;
};

template <class T, std::size_t N>
Result<T> choose(const char* flag, const std::string& text, const Choice<T> (&choices)[N]) {
  std::string all;
  for (const Choice<T>& choice : choices) {
    if (text == choice.name) return choice.value;
    all += (all.empty() ? "" : ", ") + std::string(choice.name);
  }
  return fail(usage_error(fmt::format("{} {}: choose one of {}", flag, text, all)));
}

Result<media::PictureOptions::Size> size_of(const std::string& text) {
  const std::size_t x = text.find('x');
  const auto width = parse_integer(std::string_view(text).substr(0, x));
  const auto height =
      x == std::string::npos ? std::nullopt : parse_integer(std::string_view(text).substr(x + 1));
  if (!width || !height || *width == 0 || *height == 0 || *width > kMaxPictureSide ||
      *height > kMaxPictureSide) {
    return fail(usage_error(fmt::format("--image-size {}: write WIDTHxHEIGHT, each from 1 to {}",
                                        text, kMaxPictureSide)));
  }
  return media::PictureOptions::Size{static_cast<std::uint32_t>(*width),
                                     static_cast<std::uint32_t>(*height)};
}

}  // namespace

void MediaFlags::declare(Options& options) {
  options.optional_text("--image-size", size_, "WxH",
                        "For pictures: resize to this size (bilinear, smoothed where it shrinks)");
  options.flag("--image-crop", crop_,
               "With --image-size: cut the middle to its ratio first, else both sides stretch");
  options.optional_text("--image-channels", channels_, "gray|rgb|bgr",
                        "For pictures: convert the channels (alpha is dropped)");
  options.optional_text("--image-layout", layout_, "nchw|nhwc",
                        "For pictures: order of the input where its shape does not tell");
  options.optional_text("--image-scale", scale_, "X",
                        "For pictures: values (0..255) times X, e.g. 1/255");
  options.optional_text("--image-mean", mean_, "M,…",
                        "For pictures: subtract, after the scale; one or one per channel");
  options.optional_text("--image-std", deviation_, "S,…",
                        "For pictures: divide by, after the mean; one or one per channel");
  options.integer("--sample-rate", rate_, {1, kMaxRate}, "HZ",
                  "For sound: refuse another sample rate than this");
}

std::string MediaFlags::image_flag() const {
  if (size_) return "--image-size";
  if (crop_) return "--image-crop";
  if (channels_) return "--image-channels";
  if (layout_) return "--image-layout";
  if (scale_) return "--image-scale";
  if (mean_) return "--image-mean";
  return deviation_ ? "--image-std" : "";
}

std::optional<std::uint32_t> MediaFlags::rate() const {
  if (!rate_) return std::nullopt;
  return static_cast<std::uint32_t>(*rate_);
}

Result<media::PictureOptions> MediaFlags::picture_options() const {
  using media::Channels;
  using media::Layout;
  media::PictureOptions out;
  if (crop_ && !size_) return fail(usage_error("--image-crop has no effect without --image-size"));
  if (size_) {
    CYB_ASSIGN(out.size, size_of(*size_));
  }
  out.crop = crop_;
  if (channels_) {
    constexpr Choice<Channels> kChoices[] = {
        {"gray", Channels::kGray}, {"rgb", Channels::kRgb}, {"bgr", Channels::kBgr}};
    CYB_ASSIGN(out.channels, choose("--image-channels", *channels_, kChoices));
  }
  if (layout_) {
    constexpr Choice<Layout> kChoices[] = {{"nchw", Layout::kNchw}, {"nhwc", Layout::kNhwc}};
    CYB_ASSIGN(out.layout, choose("--image-layout", *layout_, kChoices));
  }
  if (scale_) {
    const auto scale = fraction(*scale_);
    if (!scale) return fail(usage_error(fmt::format("--image-scale {}: no number", *scale_)));
    out.scale = *scale;
  }
  CYB_ASSIGN(out.mean, numbers("--image-mean", mean_));
  CYB_ASSIGN(out.deviation, numbers("--image-std", deviation_));
  for (const double deviation : out.deviation) {
    if (deviation == 0) return fail(usage_error("--image-std: 0 divides nothing"));
  }
  return out;
}

}  // namespace cyb::cli
