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

}  // namespace
}  // namespace cyb::test
