// Pictures and sounds against Pillow and the numbers they were made of; hostile files are refused
// by their codes.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.hpp"
#include "media/media_golden.hpp"
#include "media/picture.hpp"
#include "media/sound.hpp"

namespace cyb::media {
namespace {

TEST(Picture, HasTheValuesThatPillowReads) {
  const auto golden = media_golden()["pictures"];
  ASSERT_GE(golden.size(), 11u);
  for (const auto& [name, want] : golden.items()) {
    const auto bytes = media_bytes(name);
    ASSERT_TRUE(is_picture(bytes)) << name;
    const auto got = decode_picture(bytes);
    ASSERT_TRUE(got) << name << ": " << got.error().text();
    EXPECT_EQ(got->width, want["width"]) << name;
    EXPECT_EQ(got->height, want["height"]) << name;
    ASSERT_EQ(got->channels, want["channels"]) << name;
    EXPECT_EQ(got->max, want["max"]) << name;
    EXPECT_EQ(got->values, want["values"].get<std::vector<std::uint16_t>>()) << name;
  }
}

TEST(Sound, HasTheSamplesThatWereWritten) {
  const auto golden = media_golden()["sounds"];
  ASSERT_EQ(golden.size(), 7u);
  for (const auto& [name, want] : golden.items()) {
    const auto got = decode_wav(media_bytes(name));
    ASSERT_TRUE(got) << name << ": " << got.error().text();
    EXPECT_EQ(got->rate, want["rate"]) << name;
    EXPECT_EQ(got->channels, want["channels"]) << name;
    EXPECT_EQ(got->samples, want["samples"].get<std::vector<float>>()) << name;
  }
}

TEST(Media, HostileFilesAreRefusedByCode) {
  const auto golden = media_golden()["refused"];
  ASSERT_GE(golden.size(), 26u);
  for (const auto& [name, code] : golden.items()) {
    const auto bytes = media_bytes(name);
    ASSERT_FALSE(bytes.empty()) << name;
    const auto error_of = [](const auto& result) {
      return result ? "none" : result.error().code();
    };
    const std::string got =
        name.ends_with(".wav") ? error_of(decode_wav(bytes)) : error_of(decode_picture(bytes));
    EXPECT_EQ(got, code.get<std::string>()) << name;
  }
}

TEST(Media, EveryCutOfAFileIsRefused) {
  for (const std::string name : {"rgb.png", "interlaced.png", "rgb.jpg", "progressive.jpg",
                                 "stereo16.wav", "extensible16.wav"}) {
    const auto whole = media_bytes(name);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const auto part = std::span(whole).first(n);
      const bool good =
          name.ends_with(".wav") ? decode_wav(part).has_value() : decode_picture(part).has_value();
      EXPECT_FALSE(good) << name << " of " << n << " bytes";
    }
  }
}

TEST(Media, ChangedBytesNeverBreakTheReader) {
  for (const std::string name : {"rgba.png", "palette.png", "rgb16.png", "gray.jpg",
                                 "progressive.jpg", "float64.wav", "mono24.wav"}) {
    const auto whole = media_bytes(name);
    std::size_t n_refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      auto changed = whole;
      changed[i] ^= static_cast<std::byte>(0x81);
      n_refused += name.ends_with(".wav") ? !decode_wav(changed) : !decode_picture(changed);
    }
    EXPECT_GT(n_refused, 0u) << name;
  }
}

TEST(Picture, SizesAreCheckedBeforeMemoryIsTaken) {
  EXPECT_TRUE(check_picture_size(8192, 8192));
  EXPECT_TRUE(check_picture_size(kMaxPictureSide, 1000));
  for (const auto& [width, height] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {8193, 8192}, {kMaxPictureSide + 1, 1}, {1, kMaxPictureSide + 1}, {UINT64_MAX, 2}}) {
    const auto result = check_picture_size(width, height);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), "M03");
  }
  EXPECT_EQ(check_picture_size(0, 4).error().code(), "M02");
}

}  // namespace
}  // namespace cyb::media
