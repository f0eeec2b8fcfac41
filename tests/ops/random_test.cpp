// Random: known answers (Philox4x32-10 and Box and Muller written again in Python, in double
// precision), the same numbers whatever the shape, and moments.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "ops/op.hpp"

namespace cyb {
namespace {

std::vector<float> draw(const std::vector<std::int64_t>& shape, std::int64_t kind, float a, float b,
                        std::uint64_t seed) {
  const Op op =
      make_op(OpTag::kRandom,
              {{"kind", kind}, {"a", a}, {"b", b}, {"seed", static_cast<std::int64_t>(seed)}})
          .value();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const TensorView input{DType::kI64, Shape{rank},
                         reinterpret_cast<const std::byte*>(shape.data())};
  const auto specs = run_specs(op, std::span(&input, 1));
  EXPECT_TRUE(specs) << specs.error().text();
  const Shape out = *(*specs)[0].bind({});
  EXPECT_EQ(out, Shape{std::span<const std::int64_t>(shape)});
  std::vector<float> values(static_cast<std::size_t>(out.count()));
  const MutableTensorView view{DType::kF32, out, reinterpret_cast<std::byte*>(values.data())};
  const auto done =
      op_info(OpTag::kRandom)
          .reference(
              {.attrs = op.attrs, .inputs = std::span(&input, 1), .outputs = std::span(&view, 1)});
  EXPECT_TRUE(done);
  return values;
}

constexpr std::uint64_t kSeed = 0x123456789abcdef0;

TEST(Random, KnownAnswers) {
  constexpr std::array kUniform = {2.1075106263160706, 3.4088268876075745, 4.366981506347656,
                                   2.506647825241089,  2.6634642481803894, 3.13218492269516,
                                   2.063754141330719,  3.8010908365249634};
  constexpr std::array kNormal = {0.8673723758888905, 1.0256379502148778, 1.430325357188228,
                                  1.7699052227300496, 0.746295406163797,  1.2461817035417992,
                                  0.9162968812936791, 0.9388934621718782};
  const std::vector<float> uniform = draw({8}, 0, 2, 5, kSeed),
                           normal = draw({8}, 1, 1, 0.5F, kSeed);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_FLOAT_EQ(uniform[i], static_cast<float>(kUniform[i])) << i;
    EXPECT_FLOAT_EQ(normal[i], static_cast<float>(kNormal[i])) << i;
  }
}

TEST(Random, ElementsDependOnSeedAndPlaceAlone) {
  const std::vector<float> flat = draw({6}, 1, 0, 1, 7), square = draw({2, 3}, 1, 0, 1, 7);
  EXPECT_EQ(flat, square);
  EXPECT_NE(flat, draw({6}, 1, 0, 1, 8));
  EXPECT_TRUE(draw({0, 4}, 0, 0, 1, 7).empty());
}

TEST(Random, MomentsAndRange) {
  constexpr std::size_t kN = 100000;
  const auto moments = [](const std::vector<float>& values) {
    double sum = 0, squares = 0;
    for (const float v : values) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
    }
    const double mean = sum / kN;
    return std::pair(mean, squares / kN - mean * mean);
  };
  const std::vector<float> uniform = draw({kN}, 0, 0, 1, 3);
  for (const float v : uniform) ASSERT_TRUE(v >= 0.0F && v < 1.0F);
  EXPECT_NEAR(moments(uniform).first, 0.5, 0.005);
  EXPECT_NEAR(moments(uniform).second, 1.0 / 12, 0.002);
  const std::vector<float> normal = draw({kN}, 1, 0, 1, 3);
  EXPECT_NEAR(moments(normal).first, 0, 0.02);
  EXPECT_NEAR(moments(normal).second, 1, 0.03);
}

}  // namespace
}  // namespace cyb
