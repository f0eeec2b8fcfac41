// The searching encoders against ggml's own: on the same values no format has a larger error. And
// values at the edges: zeros, constants, what is not finite, what is very large or small.
#include "tensor/formats/encoders.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cyb {
namespace {

constexpr std::array kNames = {"q8",  "q4",  "q4_1", "q5_0", "q5_1",
                               "q2k", "q3k", "q4k",  "q5k",  "q6k"};
constexpr std::size_t kN = 64 * 256;

/// The values of tests/golden/make/ggml_errors.py.
std::vector<float> values(const std::string& kind) {
  std::vector<float> out(kN);
  for (std::size_t i = 0; i < kN; ++i) {
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      std::uint64_t state = (8 * i + j + 1) * 0x9E3779B97F4A7C15u;
      state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9u;
      state = (state ^ (state >> 27)) * 0x94D049BB133111EBu;
      sum += static_cast<std::int64_t>((state ^ (state >> 31)) >> 48);
    }
    const float x = static_cast<float>(sum - 4 * 65535) / 0x1p20f;
    const auto group = static_cast<float>(static_cast<int>(i / 32 % 7) - 3);
    out[i] = kind == "normal" ? x : kind == "tails" ? x * x * x : x + group / 16.0f;
  }
  return out;
}

std::vector<std::byte> encoded(const FormatInfo& format, const std::vector<float>& x,
                               const float* weights = nullptr) {
  std::vector<std::byte> out(x.size() / format.block_values * format.block_bytes);
  formats::fine_encoder(format.dtype)(x.data(), weights, out.data(), x.size());
  return out;
}

std::vector<float> decoded(const FormatInfo& format, const std::vector<std::byte>& bytes) {
  std::vector<float> out(bytes.size() / format.block_bytes * format.block_values);
  format.decode(bytes.data(), out.data(), out.size());
  return out;
}

double squared_error(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    sum += e * e;
  }
  return sum;
}

class Encoders : public testing::TestWithParam<const char*> {
 protected:
  const FormatInfo& format_ = format_info(find_dtype(GetParam()).value());
};

TEST_P(Encoders, NoLargerErrorThanGgml) {
  std::ifstream file(CYB_TESTS_DIR "/golden/encodings/ggml_errors.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  for (const char* kind : {"normal", "tails", "shifted"}) {
    const std::vector<float> x = values(kind);
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v);
    // The orders of summation differ.
    ASSERT_NEAR(sum, golden.at(kind).at("sum").get<double>(), 1e-9) << "other values";
    const double error = squared_error(x, decoded(format_, encoded(format_, x)));
    const double theirs = golden.at(kind).at(GetParam()).get<double>();
    EXPECT_LT(error, theirs) << kind;
    EXPECT_GT(error, 0.1 * theirs) << kind << ": too good to be true";
  }
}

TEST_P(Encoders, EdgesAreDefined) {
  const std::size_t n = 256;
  const auto all = [&](float v) { return std::vector<float>(n, v); };
  const auto back = [&](const std::vector<float>& x) {
    return decoded(format_, encoded(format_, x));
  };
  EXPECT_EQ(back(all(0)), all(0));
  for (const float v : {1.0f, -1.0f, 0x1p-10f, -1000.0f}) {
    const std::vector<float> y = back(all(v));
    // A constant is the easiest block. The f16 scales of k blocks are denormal for small values.
    const float part = std::fabs(v) < 0.01f ? 1e-2f : 2e-3f;
    for (const float got : y) EXPECT_NEAR(got, v, std::fabs(v) * part) << v;
  }
  std::vector<float> x = values("normal");
  x.resize(n);
  std::vector<float> y = x;
  y[3] = NAN;
  y[77] = INFINITY;
  y[78] = -INFINITY;
  x[3] = x[77] = x[78] = 0;
  EXPECT_EQ(encoded(format_, y), encoded(format_, x));
  for (float scale : {0x1p-60f, 0x1p-24f, 0x1p12f}) {
    std::vector<float> z = x;
    for (float& v : z) v *= scale;
    for (const float v : back(z)) EXPECT_TRUE(std::isfinite(v)) << scale;
  }
}

TEST_P(Encoders, OneOutlierDoesNotSpoilTheOthers) {
  std::vector<float> x = values("normal");
  x.resize(256);
  x[100] = 3;
  const std::vector<float> y = decoded(format_, encoded(format_, x));
  EXPECT_NEAR(y[100], 3, 0.5);
  double far = 0;
  const std::vector<float> plain = values("normal");
  for (std::size_t i = 128; i < 256; ++i) {
    const double e = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    far += e * e;
  }
  EXPECT_LT(far, 128 * 0.06 * 0.06);
}

TEST_P(Encoders, WeightsMoveTheError) {
  const std::vector<float> x = values("normal");
  std::vector<float> weights(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) weights[i] = i % 4 == 0 ? 50.0f : 0.1f;
  const std::vector<float> plain = decoded(format_, encoded(format_, x));
  const std::vector<float> weighted = decoded(format_, encoded(format_, x, weights.data()));
  double before = 0, after = 0;
  for (std::size_t i = 0; i < x.size(); i += 4) {
    before += std::pow(static_cast<double>(x[i] - plain[i]), 2);
    after += std::pow(static_cast<double>(x[i] - weighted[i]), 2);
  }
  EXPECT_LT(after, before);
}

INSTANTIATE_TEST_SUITE_P(All, Encoders, testing::ValuesIn(kNames),
                         [](const auto& place) { return std::string(place.param); });

TEST(Encoders, OthersHaveNone) {
  EXPECT_EQ(formats::fine_encoder(DType::kF32), nullptr);
  EXPECT_EQ(formats::fine_encoder(DType::kIq4nl), nullptr);
}

}  // namespace
}  // namespace cyb
