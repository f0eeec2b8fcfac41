// Decoders against the values of the gguf package, bit for bit; encoders against the rules of spec
// model-format 6.2.
#include "tensor/formats/formats.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/half.hpp"
#include "base/reader.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb {
namespace {

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, BlocksDecodeToEqualBits) {
  const auto file =
      MappedFile::open(std::string(CYB_TESTS_DIR "/golden/blocks/") + GetParam() + ".bin");
  ASSERT_TRUE(file) << file.error().text();
  BoundedReader reader((*file)->bytes());
  const auto n_blocks = reader.read<std::uint32_t>();
  const auto block_bytes = reader.read<std::uint32_t>();
  const auto block_values = reader.read<std::uint32_t>();
  ASSERT_TRUE(n_blocks && block_bytes && block_values);
  const auto dtype = find_dtype(GetParam());
  ASSERT_TRUE(dtype);
  const FormatInfo& format = format_info(*dtype);
  EXPECT_EQ(format.block_bytes, *block_bytes);
  EXPECT_EQ(format.block_values, *block_values);
  const auto raw = reader.take(std::uint64_t{*n_blocks} * *block_bytes);
  ASSERT_TRUE(raw);
  const std::size_t n = std::size_t{*n_blocks} * *block_values;
  const auto expected = reader.take(n * sizeof(float));
  ASSERT_TRUE(expected);
  ASSERT_EQ(reader.remaining(), 0u);
  ASSERT_NE(format.decode, nullptr);

  std::vector<float> values(n);
  format.decode(raw->data(), values.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t want = 0;
    std::memcpy(&want, expected->data() + 4 * i, 4);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), want) << "value " << i << " of " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden,
                         testing::Values("f16", "bf16", "q8", "q4", "q4_1", "q5_0", "q5_1", "q2k",
                                         "q3k", "q4k", "q5k", "q6k", "iq4nl", "iq4xs", "iq3xxs",
                                         "iq3s", "iq2xxs", "iq2xs", "iq2s", "iq1s", "iq1m", "tq1_0",
                                         "tq2_0", "mxfp4", "fp8e4m3", "fp8e5m2"));

/// Values of a smooth, sign-changing sequence without randomness.
std::vector<float> wave(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto t = static_cast<float>(i);
    x[i] = std::sin(0.37f * t) * (1.0f + 0.01f * t);
  }
  return x;
}

TEST(Encode, Q8FollowsTheRule) {
  std::vector<float> x(32, 0.0f);
  x[0] = -12.7f;
  x[1] = 12.7f / 2;  // 63.5 rounds half away from zero to 64, up to the rounding of d
  x[2] = 0.05f;
  std::vector<std::byte> block(34);
  formats::encode_q8(x, block.data());
  std::uint16_t d = 0;
  std::memcpy(&d, block.data(), 2);
  EXPECT_EQ(d, f32_to_f16(12.7f / 127.0f));
  EXPECT_EQ(std::to_integer<std::uint8_t>(block[2]), 0x81);  // -127
  EXPECT_EQ(std::to_integer<std::uint8_t>(block[3]), 64);
}

TEST(Encode, ErrorsStayWithinHalfAStep) {
  const std::vector<float> x = wave(4096);
  std::vector<float> back(x.size());
  std::vector<std::byte> raw(x.size() / 32 * 34);
  formats::encode_q8(x, raw.data());
  formats::decode_q8(raw.data(), back.data(), back.size());
  for (std::size_t block = 0; block < x.size(); block += 32) {
    float largest = 0, error = 0;
    for (std::size_t i = block; i < block + 32; ++i) {
      largest = std::max(largest, std::fabs(x[i]));
      error = std::max(error, std::fabs(x[i] - back[i]));
    }
    // Half a step, and the rounding of d to half (2^-11 relative, times 127 steps).
    EXPECT_LE(error, largest * (1.0f / 254 + 0x1p-11f));
  }
  formats::encode_q4(x, raw.data());
  formats::decode_q4(raw.data(), back.data(), back.size());
  for (std::size_t block = 0; block < x.size(); block += 32) {
    float largest = 0;
    for (std::size_t i = block; i < block + 32; ++i) largest = std::max(largest, std::fabs(x[i]));
    for (std::size_t i = block; i < block + 32; ++i) {
      EXPECT_LE(std::fabs(x[i] - back[i]), largest * (1.0f / 8 + 0x1p-10f));
    }
  }
}

TEST(Encode, Q4TakesTheSignOfTheExtremeValue) {
  std::vector<float> x(32, 0.0f);
  x[3] = 2.0f;
  x[4] = -2.0f;  // a tie: the first one counts
  std::vector<std::byte> block(18);
  formats::encode_q4(x, block.data());
  std::uint16_t d = 0;
  std::memcpy(&d, block.data(), 2);
  EXPECT_EQ(f16_to_f32(d), -0.25f);
  EXPECT_EQ(std::to_integer<int>(block[2 + 3]) & 15, 0);
  EXPECT_EQ(std::to_integer<int>(block[2 + 4]) & 15, 15);
  EXPECT_EQ(std::to_integer<int>(block[2 + 5]) & 15, 8);
}

TEST(Encode, ZerosAndNonFiniteAreDefined) {
  std::vector<float> x(32, 0.0f);
  std::vector<std::byte> block(34);
  std::vector<float> back(32, 1.0f);
  formats::encode_q8(x, block.data());
  formats::decode_q8(block.data(), back.data(), 32);
  for (const float v : back) EXPECT_EQ(v, 0.0f);
  x[1] = NAN;
  x[2] = INFINITY;
  formats::encode_q8(x, block.data());
  formats::encode_q4(x, block.data());
  EXPECT_EQ(formats::encode_f16(std::vector<float>{1.0f, 65504.0f, 65505.0f}, block.data()), 2);
  EXPECT_EQ(formats::encode_f16(std::vector<float>{1.0f, -65504.0f}, block.data()), -1);
}

TEST(Encode, TwoByteFloatsRoundToNearestEven) {
  // Halfway cases of half: 2049 lies between 2048 and 2050, 2051 between 2050 and 2052.
  EXPECT_EQ(f16_to_f32(f32_to_f16(2049.0f)), 2048.0f);
  EXPECT_EQ(f16_to_f32(f32_to_f16(2051.0f)), 2052.0f);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(257.0f)), 256.0f);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(259.0f)), 260.0f);
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    if ((h & 0x7C00) == 0x7C00 && (h & 0x3FF) != 0) continue;  // NaN payloads are not kept
    ASSERT_EQ(f32_to_f16(f16_to_f32(h)), h);
  }
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    if ((h & 0x7F80) == 0x7F80 && (h & 0x7F) != 0) continue;
    ASSERT_EQ(f32_to_bf16(bf16_to_f32(h)), h);
  }
}

TEST(Ternary, CodesAndTheInvalidOne) {
  const std::vector<std::byte> raw = {std::byte{0b00'10'01'00}, std::byte{0b01'01'10'10}};
  std::vector<float> x(8);
  formats::decode_ternary(raw.data(), x.data(), x.size());
  EXPECT_EQ(x, (std::vector<float>{0, 1, -1, 0, -1, -1, 1, 1}));
  EXPECT_EQ(formats::ternary_find_invalid(raw), -1);
  const std::vector<std::byte> bad = {std::byte{0}, std::byte{0b11'00'00'00}};
  EXPECT_EQ(formats::ternary_find_invalid(bad), 1);
}

TEST(Ternary, EncodesByMeanMagnitude) {
  const std::vector<float> x = {2.0f, -2.0f, 0.5f, -0.5f, 1.25f, 0.1f, -3.0f, 0.65f};
  std::vector<std::byte> raw(2);
  EXPECT_EQ(formats::encode_ternary(x, raw.data()), 1.25f);
  std::vector<float> back(8);
  formats::decode_ternary(raw.data(), back.data(), 8);
  EXPECT_EQ(back, (std::vector<float>{1, -1, 0, 0, 1, 0, -1, 1}));
}

TEST(Fixed, RoundsHalfToEvenAndFindsWhatDoesNotFit) {
  std::vector<std::byte> raw(16);
  std::vector<float> back(4);
  const std::vector<float> x = {1.5f / 256, 2.5f / 256, -127.0f, 127.99609375f};
  EXPECT_EQ(formats::encode_i16q8(x, raw.data()), -1);
  formats::decode_i16q8(raw.data(), back.data(), 4);
  EXPECT_EQ(back, (std::vector<float>{2.0f / 256, 2.0f / 256, -127.0f, 127.99609375f}));
  EXPECT_EQ(formats::encode_i16q8(std::vector<float>{0, 128.0f}, raw.data()), 1);
  EXPECT_EQ(formats::encode_i16q8(std::vector<float>{NAN}, raw.data()), 0);
  const std::vector<float> y = {-32768.0f, 32767.5f, 0x1p-16f, -0x1p-16f};
  EXPECT_EQ(formats::encode_i32q16(y, raw.data()), -1);
  formats::decode_i32q16(raw.data(), back.data(), 4);
  EXPECT_EQ(back, y);
  EXPECT_EQ(formats::encode_i32q16(std::vector<float>{32768.0f}, raw.data()), 0);
}

}  // namespace
}  // namespace cyb
