// Pictures and sounds as tensors: layouts, channels, sizes against Pillow, numbers, refusals.
#include "media/picture_tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.hpp"
#include "media/media_golden.hpp"

namespace cyb::media {
namespace {

using Dims = std::vector<std::optional<std::int64_t>>;
constexpr std::nullopt_t kAny = std::nullopt;

std::vector<float> floats(const MadeTensor& tensor) {
  std::vector<float> out(tensor.bytes.size() / sizeof(float));
  std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
  return out;
}

Picture read(const std::string& name) {
  return decode_picture(media_bytes(name)).value();
}

std::string code_of(const Picture& picture, const PictureOptions& options, const Wanted& wanted) {
  const auto made = picture_tensor(picture, options, wanted);
  return made ? "none" : made.error().code();
}

TEST(PictureTensor, TheLayoutIsTheInputs) {
  const Picture picture = read("rgb.png");
  const auto first = picture_tensor(picture, {}, {DType::kF32, {kAny, 3, kAny, kAny}});
  const auto last = picture_tensor(picture, {}, {DType::kF32, {1, kAny, kAny, 3}});
  const auto plain = picture_tensor(picture, {}, {DType::kF32, {3, 9, 13}});
  ASSERT_TRUE(first && last && plain);
  EXPECT_EQ(first->shape, (Shape{1, 3, 9, 13}));
  EXPECT_EQ(last->shape, (Shape{1, 9, 13, 3}));
  EXPECT_EQ(plain->shape, (Shape{3, 9, 13}));
  EXPECT_EQ(floats(*first), floats(*plain));
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 9 * 13; ++i) {
      EXPECT_EQ(floats(*first)[c * 117 + i], picture.values[i * 3 + c]);
      EXPECT_EQ(floats(*last)[i * 3 + c], picture.values[i * 3 + c]);
    }
  }
}

TEST(PictureTensor, ALayoutThatTheShapeDoesNotTellMustBeGiven) {
  const Picture picture = read("rgb.png");
  EXPECT_EQ(code_of(picture, {}, {DType::kF32, {1, kAny, kAny, kAny}}), "M07");
  EXPECT_EQ(code_of(picture, {}, {DType::kF32, {1, 3, kAny, 4}}), "M07");
  PictureOptions options;
  options.layout = Layout::kNhwc;
  const auto made = picture_tensor(picture, options, {DType::kF32, {1, kAny, kAny, kAny}});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->shape, (Shape{1, 9, 13, 3}));
}

TEST(PictureTensor, ChannelsAreConvertedOnlyWhenAskedFor) {
  const Wanted three{DType::kF32, {1, 3, kAny, kAny}}, one{DType::kF32, {1, 1, kAny, kAny}};
  for (const std::string name : {"gray.png", "rgba.png", "gray_alpha.png", "gray.jpg"})
    EXPECT_EQ(code_of(read(name), {}, three), "M05") << name;
  EXPECT_EQ(code_of(read("rgb.png"), {}, one), "M05");
  const Picture rgba = read("rgba.png");
  PictureOptions rgb, bgr, gray;
  rgb.channels = Channels::kRgb;
  bgr.channels = Channels::kBgr;
  gray.channels = Channels::kGray;
  const auto r = floats(picture_tensor(rgba, rgb, three).value());
  const auto b = floats(picture_tensor(rgba, bgr, three).value());
  const auto g = floats(picture_tensor(rgba, gray, one).value());
  const auto repeated = floats(picture_tensor(read("gray_alpha.png"), rgb, three).value());
  for (std::size_t i = 0; i < 117; ++i) {
    const std::uint16_t* pixel = &rgba.values[i * 4];
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_EQ(r[c * 117 + i], pixel[c]);
      EXPECT_EQ(b[(2 - c) * 117 + i], pixel[c]);
      EXPECT_EQ(repeated[c * 117 + i], repeated[i]);
    }
    EXPECT_NEAR(g[i], 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2], 1e-4);
  }
}

TEST(PictureTensor, SizesAreThoseOfTheInputOrAskedFor) {
  const Picture picture = read("rgb.png");
  const Wanted fixed{DType::kF32, {1, 3, 4, 5}};
  EXPECT_EQ(code_of(picture, {}, fixed), "M06");
  PictureOptions options;
  options.size = {5, 4};
  EXPECT_EQ(code_of(picture, options, fixed), "none");
  options.size = {4, 5};
  EXPECT_EQ(code_of(picture, options, fixed), "M06");
  options.size = {60000, 60000};
  EXPECT_EQ(code_of(picture, options, {DType::kF32, {1, 3, kAny, kAny}}), "M03");
}

TEST(PictureTensor, ResizesAsPillowDoes) {
  const Picture picture = read("rgb.png");
  const auto golden = media_golden();
  for (const auto& want : golden["resized"]) {
    PictureOptions options;
    options.size = {want["width"], want["height"]};
    options.crop = want["crop"];
    const auto made = picture_tensor(picture, options, {DType::kF32, {1, 3, kAny, kAny}});
    ASSERT_TRUE(made) << made.error().text();
    const auto got = floats(*made), values = want["values"].get<std::vector<float>>();
    ASSERT_EQ(got.size(), values.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], values[i], 1e-3) << want["width"] << "x" << want["height"] << " " << i;
  }
}

TEST(PictureTensor, NumbersAreScaledAsAskedFor) {
  const Picture picture = read("rgb.png");
  PictureOptions options;
  options.scale = 1.0 / 255;
  options.mean = {0.485, 0.456, 0.406};
  options.deviation = {0.5};
  const Wanted wanted{DType::kF32, {1, 3, kAny, kAny}};
  const auto got = floats(picture_tensor(picture, options, wanted).value());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 117; ++i)
      EXPECT_FLOAT_EQ(
          got[c * 117 + i],
          static_cast<float>((picture.values[i * 3 + c] / 255.0 - options.mean[c]) / 0.5));
  }
  options.mean = {0.5, 0.5};
  EXPECT_EQ(code_of(picture, options, wanted), "M05");
  const auto half = picture_tensor(picture, {}, {DType::kF16, {1, 3, kAny, kAny}}).value();
  std::uint16_t first = 0;
  std::memcpy(&first, half.bytes.data(), sizeof first);
  EXPECT_EQ(f16_to_f32(first), picture.values[0]);
}

TEST(PictureTensor, BytesStayAsStored) {
  const Picture picture = read("rgb.png");
  const Wanted wanted{DType::kU8, {1, kAny, kAny, 3}};
  const auto made = picture_tensor(picture, {}, wanted);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->bytes.size(), picture.values.size());
  for (std::size_t i = 0; i < made->bytes.size(); ++i)
    EXPECT_EQ(static_cast<unsigned>(made->bytes[i]), picture.values[i]);
  PictureOptions options;
  options.scale = 0.5;
  EXPECT_EQ(code_of(picture, options, wanted), "M07");
  EXPECT_EQ(code_of(read("rgb16.png"), {}, wanted), "M07");
}

TEST(PictureTensor, SixteenBitsAreOnTheSameScale) {
  const Picture picture = read("rgb16.png");
  const auto got = floats(picture_tensor(picture, {}, {DType::kF32, {1, kAny, kAny, 3}}).value());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_FLOAT_EQ(got[i], static_cast<float>(picture.values[i]) / 257.0F);
}

TEST(PictureTensor, OtherInputsTakeNoPicture) {
  const Picture picture = read("rgb.png");
  EXPECT_EQ(code_of(picture, {}, {DType::kF32, {3, kAny}}), "M07");
  EXPECT_EQ(code_of(picture, {}, {DType::kI64, {1, 3, kAny, kAny}}), "M07");
  EXPECT_EQ(code_of(picture, {}, {DType::kF32, {2, 3, kAny, kAny}}), "M07");
}

TEST(SoundTensor, IsWhatTheInputTakes) {
  const Sound mono = decode_wav(media_bytes("mono24.wav")).value();
  const Sound stereo = decode_wav(media_bytes("stereo16.wav")).value();
  const auto n = static_cast<std::int64_t>(mono.length());
  for (const Dims& dims : {Dims{kAny}, Dims{kAny, kAny}, Dims{1, n}, Dims{kAny, 1, kAny}}) {
    const auto made = sound_tensor(mono, std::nullopt, {DType::kF32, dims});
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_EQ(made->shape.rank(), dims.size());
    EXPECT_EQ(made->shape.back(), n);
    EXPECT_EQ(floats(*made), mono.samples);
  }
  const auto two = sound_tensor(stereo, std::nullopt, {DType::kF32, {kAny, 2, kAny}});
  ASSERT_TRUE(two);
  EXPECT_EQ(two->shape, (Shape{1, 2, n}));
  for (std::size_t i = 0; i < stereo.length(); ++i) {
    EXPECT_EQ(floats(*two)[i], stereo.samples[2 * i]);
    EXPECT_EQ(floats(*two)[stereo.length() + i], stereo.samples[2 * i + 1]);
  }
  const auto code = [](const Sound& sound, std::optional<std::uint32_t> rate,
                       const Wanted& wanted) {
    const auto made = sound_tensor(sound, rate, wanted);
    return made ? "none" : made.error().code();
  };
  EXPECT_EQ(code(stereo, std::nullopt, {DType::kF32, {1, kAny}}), "M05");
  EXPECT_EQ(code(mono, std::nullopt, {DType::kF32, {1, n + 1}}), "M06");
  EXPECT_EQ(code(mono, 8000, {DType::kF32, {1, kAny}}), "M06");
  EXPECT_EQ(code(mono, 16000, {DType::kF32, {1, kAny}}), "none");
  EXPECT_EQ(code(mono, std::nullopt, {DType::kI16, {1, kAny}}), "M07");
  EXPECT_EQ(code(mono, std::nullopt, {DType::kF32, {1, 1, 1, kAny}}), "M07");
}

}  // namespace
}  // namespace cyb::media
