// Every f32 elementary function against the C library's: at most 0.51 ulp, and the same bits on
// every machine. The f64 functions are wrong by less than 1e-8 ulp of f32 and decide most inputs;
// what is close to the bound is asked of the long double ones. Slow: all 2^32 inputs, with a digest
// of the results (tests/golden/math_sweep.txt); else a stride through them, with a digest too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "ops/math/elementary.hpp"

namespace cyb {
namespace {

using Exact = long double;

struct Function {
  const char* name;
  double (*ours)(double);
  double (*near)(double);
  Exact (*exact)(Exact);
};

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}
template <typename T>
T softplus(T x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
template <typename T>
T gelu(T x) {
  return x * (T{0.5} * std::erfc(-x * std::sqrt(T{0.5})));
}
template <typename T>
T gelu_tanh(T x) {
  const T root = std::sqrt(T{2} / std::acos(T{-1}));
  return x * sigmoid(T{2} * root * (x + static_cast<T>(0.044715) * x * x * x));
}
template <typename T>
T silu(T x) {
  return x * sigmoid(x);
}
template <typename T>
T mish(T x) {
  return x * std::tanh(softplus(x));
}

const Function kFunctions[] = {
    {"exp", math::exp_f64, std::exp, std::exp},
    {"exp2", math::exp2_f64, std::exp2, std::exp2},
    {"expm1", math::expm1_f64, std::expm1, std::expm1},
    {"log", math::log_f64, std::log, std::log},
    {"log2", math::log2_f64, std::log2, std::log2},
    {"log1p", math::log1p_f64, std::log1p, std::log1p},
    {"sin", [](double x) { return math::sincos_f64(x).sin; }, std::sin, std::sin},
    {"cos", [](double x) { return math::sincos_f64(x).cos; }, std::cos, std::cos},
    {"tan", math::tan_f64, std::tan, std::tan},
    {"asin", math::asin_f64, std::asin, std::asin},
    {"acos", math::acos_f64, std::acos, std::acos},
    {"atan", math::atan_f64, std::atan, std::atan},
    {"sinh", math::sinh_f64, std::sinh, std::sinh},
    {"cosh", math::cosh_f64, std::cosh, std::cosh},
    {"tanh", math::tanh_f64, std::tanh, std::tanh},
    {"asinh", math::asinh_f64, std::asinh, std::asinh},
    {"acosh", math::acosh_f64, std::acosh, std::acosh},
    {"atanh", math::atanh_f64, std::atanh, std::atanh},
    {"erf", math::erf_f64, std::erf, std::erf},
    {"erfc", math::erfc_f64, std::erfc, std::erfc},
    {"sigmoid", math::sigmoid_f64, sigmoid<double>, sigmoid<Exact>},
    {"softplus", math::softplus_f64, softplus<double>, softplus<Exact>},
    {"silu", [](double x) { return math::swish_f64(x); }, silu<double>, silu<Exact>},
    {"mish", math::mish_f64, mish<double>, mish<Exact>},
    {"gelu", math::gelu_f64, gelu<double>, gelu<Exact>},
    {"gelu_tanh", math::gelu_tanh_f64, gelu_tanh<double>, gelu_tanh<Exact>},
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

/// Whether `got` is `near` rounded: half an ulp and the error of `near`, which is far from 0.01
/// ulp.
bool clearly_right(float got, double near) {
  return static_cast<float>(near) == got || (std::isnan(near) && std::isnan(got));
}

/// A digest of the bits of all results.
std::uint64_t sweep(const Function& f, std::uint64_t begin, std::uint64_t end, std::uint64_t step) {
  std::uint64_t digest = 0xcbf29ce484222325U;
  double worst = 0.0;
  float where = 0.0F;
  for (std::uint64_t bits = begin; bits < end; bits += step) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const auto got = static_cast<float>(f.ours(static_cast<double>(x)));
    // A NaN has no sign and no payload here: which one an addition keeps is the machine's choice.
    const auto seen = std::isnan(got) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(got);
    digest = (std::rotl(digest, 29) ^ seen) * 0x100000001b3U;
    if (clearly_right(got, f.near(static_cast<double>(x)))) continue;
    const double error = ulps(got, f.exact(static_cast<Exact>(x)));
    if (!(error > worst)) continue;
    worst = error;
    where = x;
  }
  EXPECT_LE(worst, 0.51) << f.name << "(" << std::hexfloat << where << ")";
  return digest;
}

/// The digests of all parts by name, from tests/golden/math_sweep.txt.
std::map<std::string, std::string>& known_digests() {
  static std::map<std::string, std::string> known = [] {
    std::map<std::string, std::string> out;
    std::ifstream file(std::string(CYB_TESTS_DIR) + "/golden/math_sweep.txt");
    for (std::string name, digest; file >> name >> digest;) out[name] = digest;
    return out;
  }();
  return known;
}

TEST(MathSweep, AStrideThroughAllInputs) {
  for (const Function& f : kFunctions) {
    const std::uint64_t digest = sweep(f, 0, std::uint64_t{1} << 32, 65537);
    const std::string name = std::string(f.name) + "_stride";
    EXPECT_EQ(fmt::format("{:016x}", digest), known_digests()[name]) << name;
  }
}

class MathSweepSlow : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

std::string part_name(std::size_t function, int part) {
  return std::string(kFunctions[function].name) + "_" + std::to_string(part);
}

TEST_P(MathSweepSlow, AllInputs) {
  const auto [function, part] = GetParam();
  const std::uint64_t size = std::uint64_t{1} << 29;
  const std::uint64_t digest = sweep(kFunctions[function], size * static_cast<std::uint64_t>(part),
                                     size * static_cast<std::uint64_t>(part + 1), 1);
  EXPECT_EQ(fmt::format("{:016x}", digest), known_digests()[part_name(function, part)])
      << part_name(function, part);
}

INSTANTIATE_TEST_SUITE_P(Functions, MathSweepSlow,
                         testing::Combine(testing::Range(std::size_t{0}, std::size(kFunctions)),
                                          testing::Range(0, 8)),
                         [](const auto& p) {
                           return part_name(std::get<0>(p.param), std::get<1>(p.param));
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
