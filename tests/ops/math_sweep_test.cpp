// Every f32 elementary function against the long double functions of the C library (64 bits of
// mantissa or more): at most 0.51 ulp. Slow: all 2^32 inputs; else a stride through them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/math/elementary.hpp"

namespace cyb {
namespace {

using Exact = long double;

struct Function {
  const char* name;
  double (*ours)(double);
  Exact (*exact)(Exact);
};

Exact sigmoid(Exact x) {
  return 1.0L / (1.0L + std::exp(-x));
}
Exact softplus(Exact x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
Exact gelu(Exact x) {
  return x * (0.5L * std::erfc(-x * std::sqrt(0.5L)));
}
Exact gelu_tanh(Exact x) {
  const Exact root = std::sqrt(2.0L / std::acos(-1.0L));
  return x * sigmoid(2.0L * root * (x + Exact{0.044715} * x * x * x));
}

const Function kFunctions[] = {
    {"exp", math::exp_f64, std::exp},
    {"exp2", math::exp2_f64, std::exp2},
    {"expm1", math::expm1_f64, std::expm1},
    {"log", math::log_f64, std::log},
    {"log2", math::log2_f64, std::log2},
    {"log1p", math::log1p_f64, std::log1p},
    {"sin", [](double x) { return math::sincos_f64(x).sin; }, std::sin},
    {"cos", [](double x) { return math::sincos_f64(x).cos; }, std::cos},
    {"tan", math::tan_f64, std::tan},
    {"asin", math::asin_f64, std::asin},
    {"acos", math::acos_f64, std::acos},
    {"atan", math::atan_f64, std::atan},
    {"sinh", math::sinh_f64, std::sinh},
    {"cosh", math::cosh_f64, std::cosh},
    {"tanh", math::tanh_f64, std::tanh},
    {"asinh", math::asinh_f64, std::asinh},
    {"acosh", math::acosh_f64, std::acosh},
    {"atanh", math::atanh_f64, std::atanh},
    {"erf", math::erf_f64, std::erf},
    {"erfc", math::erfc_f64, std::erfc},
    {"sigmoid", math::sigmoid_f64, sigmoid},
    {"softplus", math::softplus_f64, softplus},
    {"silu", [](double x) { return math::swish_f64(x); }, [](Exact x) { return x * sigmoid(x); }},
    {"mish", math::mish_f64, [](Exact x) { return x * std::tanh(softplus(x)); }},
    {"gelu", math::gelu_f64, gelu},
    {"gelu_tanh", math::gelu_tanh_f64, gelu_tanh},
};

/// Distance from `exact` in units in the last place of the nearest f32; NaNs are equal.
double ulps(float got, Exact exact) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0.0 : 1e9;
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest) || got == nearest) return got == nearest ? 0.0 : 1e9;
  const float magnitude = std::fabs(nearest);
  const Exact ulp =
      static_cast<Exact>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) -
      static_cast<Exact>(magnitude);
  return static_cast<double>(std::fabs(static_cast<Exact>(got) - exact) / ulp);
}

void sweep(const Function& f, std::uint64_t begin, std::uint64_t end, std::uint64_t step) {
  double worst = 0.0;
  float where = 0.0F;
  for (std::uint64_t bits = begin; bits < end; bits += step) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const auto got = static_cast<float>(f.ours(static_cast<double>(x)));
    const double error = ulps(got, f.exact(static_cast<Exact>(x)));
    if (!(error > worst)) continue;
    worst = error;
    where = x;
  }
  EXPECT_LE(worst, 0.51) << f.name << "(" << std::hexfloat << where << ")";
}

TEST(MathSweep, AStrideThroughAllInputs) {
  for (const Function& f : kFunctions) sweep(f, 0, std::uint64_t{1} << 32, 65537);
}

class MathSweepSlow : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(MathSweepSlow, AllInputs) {
  const auto [function, part] = GetParam();
  const std::uint64_t size = std::uint64_t{1} << 29;
  sweep(kFunctions[function], size * static_cast<std::uint64_t>(part),
        size * static_cast<std::uint64_t>(part + 1), 1);
}

INSTANTIATE_TEST_SUITE_P(Functions, MathSweepSlow,
                         testing::Combine(testing::Range(std::size_t{0}, std::size(kFunctions)),
                                          testing::Range(0, 8)),
                         [](const auto& p) {
                           return std::string(kFunctions[std::get<0>(p.param)].name) + "_" +
                                  std::to_string(std::get<1>(p.param));
                         });

TEST(Math, PowerHasTheSpecialValuesOfTheStandard) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double values[] = {0.0,  -0.0, 1.0,  -1.0, 2.0,   -2.0,        0.5,
                           -0.5, 3.0,  -3.0, kInf, -kInf, std::nan("")};
  for (const double base : values) {
    for (const double exponent : values) {
      const double got = math::power_f64(base, exponent), want = std::pow(base, exponent);
      EXPECT_TRUE((std::isnan(got) && std::isnan(want)) ||
                  std::fabs(got - want) <= 1e-15 * std::fabs(want) || got == want)
          << base << "^" << exponent << " = " << got;
      EXPECT_TRUE(std::isnan(want) || std::signbit(got) == std::signbit(want))
          << base << "^" << exponent;
    }
  }
}

}  // namespace
}  // namespace cyb
