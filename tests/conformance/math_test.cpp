// Elementary functions against mpmath: at most 0.51 ulp on edge and random arguments.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "conformance/golden_file.hpp"
#include "ops/math/elementary.hpp"

namespace cyb::test {
namespace {

/// Distance in units in the last place of the f32 nearest to `exact`.
double ulps(float got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest) || nearest == got) return got == nearest ? 0.0 : 1e9;
  const float magnitude = std::fabs(nearest);
  const double ulp =
      static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) -
      magnitude;
  return std::fabs(static_cast<double>(got) - exact) / ulp;
}

void check(const GoldenFile& file, const std::string& name, float (*function)(float)) {
  const TensorView x = file.tensor(name + ".x"), y = file.tensor(name + ".y");
  ASSERT_GT(x.shape.count(), 100);
  for (std::int64_t i = 0; i < x.shape.count(); ++i) {
    const float argument = x.as<float>()[i];
    EXPECT_LE(ulps(function(argument), y.as<double>()[i]), 0.51) << name << "(" << argument << ")";
  }
}

TEST(Math, MatchesMpmath) {
  const GoldenFile file("math");
  check(file, "exp", math::exp_f32);
  check(file, "log", math::log_f32);
  check(file, "tanh", math::tanh_f32);
  check(file, "erf", math::erf_f32);
  check(file, "sigmoid", math::sigmoid_f32);
  check(file, "sin", math::sin_f32);
  check(file, "cos", math::cos_f32);
}

TEST(Math, LimitsAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(math::exp_f32(kInf), kInf);
  EXPECT_EQ(math::exp_f32(-kInf), 0.0F);
  EXPECT_EQ(math::log_f32(0.0F), -kInf);
  EXPECT_EQ(math::log_f32(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log_f32(-1.0F)));
  EXPECT_EQ(math::tanh_f32(kInf), 1.0F);
  EXPECT_EQ(math::tanh_f32(-kInf), -1.0F);
  EXPECT_EQ(math::erf_f32(kInf), 1.0F);
  EXPECT_EQ(math::sigmoid_f32(-kInf), 0.0F);
  EXPECT_EQ(math::sigmoid_f32(kInf), 1.0F);
  EXPECT_TRUE(std::isnan(math::sin_f32(kInf)));
  EXPECT_TRUE(std::signbit(math::tanh_f32(-0.0F)));
  EXPECT_TRUE(std::signbit(math::sin_f32(-0.0F)));
  for (const auto f : {math::exp_f32, math::log_f32, math::tanh_f32, math::erf_f32,
                       math::sigmoid_f32, math::sin_f32, math::cos_f32}) {
    EXPECT_TRUE(std::isnan(f(nan)));
  }
}

TEST(Math, PowerOfRopeBases) {
  EXPECT_DOUBLE_EQ(math::pow_f64(10000.0, 0.0), 1.0);
  for (const double base : {10000.0, 500000.0, 1e6}) {
    for (int j = 0; j < 64; ++j) {
      const double want = std::pow(base, -j / 64.0);
      EXPECT_NEAR(math::pow_f64(base, -j / 64.0), want, want * 4e-15);
    }
  }
}

}  // namespace
}  // namespace cyb::test
