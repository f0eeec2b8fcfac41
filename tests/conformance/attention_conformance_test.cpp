// BlockAttention and KvCache, whose state lives in a run: a two-layer decoder on every exact target
// against the reference, and equal bits on each target for chunks and batches.
#include <gtest/gtest.h>

#include "backends/tiny_layers.hpp"
#include "conformance/targets.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

constexpr std::uint32_t kPageTokens = 16;  // what every backend takes
const std::vector<std::int32_t> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

std::vector<std::int32_t> part(std::size_t begin, std::size_t end) {
  return {kPrompt.begin() + static_cast<std::ptrdiff_t>(begin),
          kPrompt.begin() + static_cast<std::ptrdiff_t>(end)};
}

TEST(AttentionConformance, ExactTargetsAreWithinToleranceOfTheReference) {
  const TinyLayers model;
  TinyRunner reference(all_targets().front().backend, model, DType::kF32, kPageTokens);
  const auto want = reference.run({{0, 0, kPrompt}});
  for (const Target& target : all_targets()) {
    if (target.backend->numeric_mode() != NumericMode::kExact) continue;
    TinyRunner runner(target.backend, model, DType::kF32, kPageTokens);
    EXPECT_LE(error_of(runner.run({{0, 0, kPrompt}}), want), kLayerF32) << target.name;
    EXPECT_LE(error_of(runner.run_plain({1, 0, kPrompt}), want), kLayerF32) << target.name;
  }
}

TEST(AttentionConformance, ChunksAndBatchesGiveEqualBitsOnEveryTarget) {
  const TinyLayers model;
  for (const Target& target : all_targets()) {
    TinyRunner runner(target.backend, model, DType::kF32, kPageTokens);
    const auto whole = runner.run({{0, 0, kPrompt}});
    const std::vector<float> rest(whole.begin() + 6 * TinyLayers::kV, whole.end());
    const auto other = runner.run({{2, 0, {7, 7, 0}}});
    runner.run({{1, 0, part(0, 6)}});
    EXPECT_EQ(runner.run({{1, 6, part(6, 11)}}), rest) << target.name;
    runner.run({{1, 0, part(0, 6)}});
    auto joint = runner.run({{3, 0, {7, 7, 0}}, {1, 6, part(6, 11)}});
    std::vector<float> want = other;
    want.insert(want.end(), rest.begin(), rest.end());
    EXPECT_EQ(joint, want) << target.name;
  }
}

/// Ropes that depend on the length: at, below and past the original length of 6.
TEST(AttentionConformance, RopeRulesOfTheLengthEqualTheReferenceOnEveryExactTarget) {
  for (const RopeRule rule : {RopeRule::kLonger, RopeRule::kDynamic}) {
    const TinyLayers model(7, rule), fixed;
    TinyRunner reference(all_targets().front().backend, model, DType::kF32, kPageTokens);
    TinyRunner other(all_targets().front().backend, fixed, DType::kF32, kPageTokens);
    for (const std::size_t n : {4u, 6u, 7u, 11u}) {
      const auto want = reference.run({{0, 0, part(0, n)}});
      // kDynamic is the plain rope up to the original length; kLonger's tables are others.
      const bool is_plain = rule == RopeRule::kDynamic && n <= 6;
      const double apart = error_of(want, other.run({{0, 0, part(0, n)}}));
      if (is_plain) {  // its frequencies are computed, the others read from a table
        EXPECT_LE(apart, kLayerF32) << n;
      } else {
        EXPECT_GT(apart, 10 * kLayerF32) << n;
      }
      for (const Target& target : all_targets()) {
        if (target.backend->numeric_mode() != NumericMode::kExact) continue;
        TinyRunner runner(target.backend, model, DType::kF32, kPageTokens);
        EXPECT_LE(error_of(runner.run({{0, 0, part(0, n)}}), want), kLayerF32)
            << target.name << " " << n;
        EXPECT_LE(error_of(runner.run_plain({1, 0, part(0, n)}), want), kLayerF32)
            << target.name << " plain " << n;
      }
    }
  }
}

TEST(AttentionConformance, RulesThatSayNothingAreRefused) {
  for (const RopeRule rule : {RopeRule::kLonger, RopeRule::kDynamic}) {
    for (int fault = 0; fault < 3; ++fault) {
      TinyLayers model(7, rule);
      if (fault == 0) model.original = 0;
      if (fault == 1) model.rule = static_cast<RopeRule>(3);
      if (fault == 2 && rule == RopeRule::kDynamic) model.factor = 0.5F;
      if (fault == 2 && rule == RopeRule::kLonger) model.long_freqs.pop_back();
      PlanBuilder builder(*all_targets().front().backend, PlanBuilder::Form::kBlocks, 8);
      EXPECT_FALSE(model.plan(builder, PlanBuilder::Form::kBlocks)) << fault;
    }
  }
}

}  // namespace
}  // namespace cyb::test
