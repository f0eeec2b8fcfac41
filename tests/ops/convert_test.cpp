// Cast's rules for numbers that do not fit: integers keep their low bits (numpy's astype), floats
// saturate.
#include "ops/layout/convert.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace cyb::convert {
namespace {

TEST(Convert, IntegersKeepTheirLowBits) {
  // numpy: np.array([300, -129, 255]).astype(np.int8) = [44, 127, -1], and so on.
  EXPECT_EQ(to_integer<std::int8_t>(std::int64_t{300}), 44);
  EXPECT_EQ(to_integer<std::int8_t>(std::int64_t{-129}), 127);
  EXPECT_EQ(to_integer<std::int8_t>(std::int64_t{255}), -1);
  EXPECT_EQ(to_integer<std::uint8_t>(std::int32_t{300}), 44);
  EXPECT_EQ(to_integer<std::uint8_t>(std::int32_t{-1}), 255);
  EXPECT_EQ(to_integer<std::int32_t>((std::int64_t{1} << 40) + 7), 7);
  EXPECT_EQ(to_integer<std::uint64_t>(std::int8_t{-1}), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(to_integer<std::int64_t>(std::numeric_limits<std::uint64_t>::max()), -1);
  EXPECT_EQ(to_integer<std::int16_t>(std::uint16_t{40000}), -25536);
}

TEST(Convert, FloatsSaturate) {
  EXPECT_EQ(to_integer<std::int8_t>(300.7F), 127);
  EXPECT_EQ(to_integer<std::int8_t>(-300.7F), -128);
  EXPECT_EQ(to_integer<std::uint8_t>(-1.5), 0);
  EXPECT_EQ(to_integer<std::int32_t>(2147483648.0F), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(to_integer<std::int64_t>(std::numeric_limits<float>::infinity()),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(to_integer<std::int32_t>(std::numeric_limits<double>::quiet_NaN()), 0);
}

}  // namespace
}  // namespace cyb::convert
