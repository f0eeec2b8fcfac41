// The reference backend: the same bits whatever the threads, batch, chunks or form of the plan; its
// checks and errors.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "backends/reference/reference_backend.hpp"
#include "backends/tiny_layers.hpp"

namespace cyb::test {
namespace {

std::shared_ptr<Backend> reference_with(unsigned threads) {
  BackendOptions options;
  options.n_threads = threads;
  return create_reference_backend(options).value();
}

const std::vector<std::int32_t> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};

std::vector<float> rows(const std::vector<float>& logits, std::size_t begin, std::size_t n) {
  const auto v = static_cast<std::size_t>(TinyLayers::kV);
  return {logits.begin() + static_cast<std::ptrdiff_t>(begin * v),
          logits.begin() + static_cast<std::ptrdiff_t>((begin + n) * v)};
}

class ReferenceBackend : public testing::Test {
 protected:
  const TinyLayers model_;
  TinyRunner runner_{reference_with(1), model_};
  const std::vector<float> whole_ = runner_.run({{0, 0, kPrompt}});
};

TEST_F(ReferenceBackend, LogitsDifferBetweenRowsAndAreFinite) {
  ASSERT_EQ(whole_.size(), kPrompt.size() * TinyLayers::kV);
  for (const float v : whole_) EXPECT_TRUE(std::isfinite(v));
  EXPECT_NE(rows(whole_, 0, 1), rows(whole_, 10, 1));
}

TEST_F(ReferenceBackend, ChunksGiveTheSameBits) {
  for (const std::size_t chunk : {1u, 2u, 3u, 7u}) {
    std::vector<float> all;
    for (std::size_t at = 0; at < kPrompt.size(); at += chunk) {
      const std::size_t n = std::min(chunk, kPrompt.size() - at);
      const std::vector<std::int32_t> ids(kPrompt.begin() + static_cast<std::ptrdiff_t>(at),
                                          kPrompt.begin() + static_cast<std::ptrdiff_t>(at + n));
      const auto part = runner_.run({{1, static_cast<std::uint32_t>(at), ids}});
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, whole_) << chunk;
  }
}

TEST_F(ReferenceBackend, ABatchGivesTheBitsOfEachSequenceAlone) {
  const std::vector<std::int32_t> other = {7, 7, 0};
  const std::vector<float> alone = runner_.run({{1, 0, other}});
  runner_.run({{2, 0, {kPrompt.begin(), kPrompt.begin() + 8}}});
  const auto joint = runner_.run({{3, 0, other}, {2, 8, {kPrompt.begin() + 8, kPrompt.end()}}});
  EXPECT_EQ(rows(joint, 0, 3), alone);
  EXPECT_EQ(rows(joint, 3, 3), rows(whole_, 8, 3));
}

TEST_F(ReferenceBackend, AnyNumberOfThreadsGivesTheSameBits) {
  for (const unsigned threads : {2u, 3u}) {
    TinyRunner runner(reference_with(threads), model_);
    EXPECT_EQ(runner.run({{0, 0, kPrompt}}), whole_) << threads;
  }
}

TEST_F(ReferenceBackend, PlainOpsGiveTheBitsOfTheBlocks) {
  EXPECT_EQ(runner_.run_plain({1, 0, kPrompt}), whole_);
  runner_.run_plain({2, 0, {kPrompt.begin(), kPrompt.begin() + 4}});
  const auto rest = runner_.run_plain({2, 4, {kPrompt.begin() + 4, kPrompt.end()}});
  EXPECT_EQ(rest, rows(whole_, 4, kPrompt.size() - 4));
}

TEST_F(ReferenceBackend, HalfPrecisionCacheIsCloseAndStillChunkInvariant) {
  TinyRunner runner(reference_with(1), model_, DType::kF16);
  const auto whole = runner.run({{0, 0, kPrompt}});
  double difference = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    difference = std::fmax(difference, std::fabs(whole[i] - whole_[i]));
  }
  EXPECT_GT(difference, 0.0);
  EXPECT_LT(difference, 2e-2);
  runner.run({{1, 0, {kPrompt.begin(), kPrompt.begin() + 5}}});
  const auto rest = runner.run({{1, 5, {kPrompt.begin() + 5, kPrompt.end()}}});
  EXPECT_EQ(rest, rows(whole, 5, kPrompt.size() - 5));
}

TEST_F(ReferenceBackend, ACopiedPageHoldsTheSameRows) {
  runner_.run({{0, 0, {kPrompt.begin(), kPrompt.begin() + 8}}});
  for (std::size_t p = 0; p < 2; ++p) {
    ASSERT_TRUE(runner_.kv().copy_page(runner_.pages(0)[p], runner_.pages(3)[p]));
  }
  const auto rest = runner_.run({{3, 8, {kPrompt.begin() + 8, kPrompt.end()}}});
  EXPECT_EQ(rest, rows(whole_, 8, 3));
  EXPECT_FALSE(runner_.kv().copy_page(0, 10000));
}

// ---- checks

struct Params {
  std::vector<std::int32_t> ids = {1, 2}, positions = {0, 1}, rows = {0, 1};
  SequenceSpan span;
  StepParams of(TinyRunner& r) {
    span = {0, static_cast<std::uint32_t>(ids.size()), 0, r.pages(0)};
    return {ids, positions, rows, std::span(&span, 1), &r.kv()};
  }
};

TEST_F(ReferenceBackend, RefusesIdsOutsideTheVocabulary) {
  for (const std::int32_t bad : {-1, static_cast<std::int32_t>(TinyLayers::kV)}) {
    Params p;
    p.ids[1] = bad;
    const auto result = runner_.executable().submit(p.of(runner_));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidInput);
    EXPECT_EQ(result.error().message(),
              "input: token id " + std::to_string(bad) + " is outside 0..22");
  }
}

TEST_F(ReferenceBackend, RefusesTooManyRowsAndBadOutputRows) {
  Params p;
  p.ids.assign(TinyRunner::kMaxTokens + 1, 1);
  p.positions.assign(p.ids.size(), 0);
  EXPECT_FALSE(runner_.executable().submit(p.of(runner_)));
  for (const auto& bad : {std::vector<std::int32_t>{0, 2}, {1, 0}, {0, 0}, {-1, 0}}) {
    Params q;
    q.rows = bad;
    EXPECT_FALSE(runner_.executable().submit(q.of(runner_)));
  }
}

TEST_F(ReferenceBackend, TooFewPagesIsContextOverflow) {
  Params p;
  StepParams params = p.of(runner_);
  p.span.past_tokens = 31;
  const auto result = runner_.executable().submit(params);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kContextOverflow);
}

TEST_F(ReferenceBackend, RefusesForeignAndMissingKvStores) {
  Params p;
  StepParams params = p.of(runner_);
  params.kv = nullptr;
  EXPECT_FALSE(runner_.executable().submit(params));
}

TEST_F(ReferenceBackend, ACancelledRunGivesNoOutputAndTheNextOneIsRight) {
  Params p;
  std::stop_source stop;
  stop.request_stop();
  ASSERT_TRUE(runner_.executable().submit(p.of(runner_)));
  const auto result = runner_.executable().sync(stop.get_token());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(runner_.executable().output(0));
  EXPECT_EQ(runner_.run({{0, 0, kPrompt}}), whole_);
}

TEST_F(ReferenceBackend, SubmitTwiceIsBusyAndSyncAloneIsAnError) {
  Params p;
  EXPECT_FALSE(runner_.executable().sync());
  ASSERT_TRUE(runner_.executable().submit(p.of(runner_)));
  const auto again = runner_.executable().submit(p.of(runner_));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::kBusy);
  EXPECT_TRUE(runner_.executable().sync());
}

TEST(ReferenceBackendErrors, NonFiniteLogitsAreNamed) {
  TinyLayers model;
  model.final_norm[0] = std::numeric_limits<float>::quiet_NaN();
  TinyRunner runner(reference_with(1), model);
  Params p;
  ASSERT_TRUE(runner.executable().submit(p.of(runner)));
  const auto result = runner.executable().sync();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kNonFinite);
}

TEST(ReferenceBackendErrors, AWeightMustHaveTheBytesOfItsShape) {
  const auto backend = reference_with(1);
  const std::vector<std::byte> bytes(36);
  const auto weight =
      backend->load_weight({"w", DType::kQ8, Shape{2, 32}, bytes}, WeightUse::kMatmul, {});
  ASSERT_FALSE(weight);
  EXPECT_EQ(weight.error().kind(), ErrorKind::kWeightFormat);
}

TEST(ReferenceBackendErrors, WeightsAreUsedInPlaceUnlessDecoded) {
  const auto backend = reference_with(1);
  const std::vector<float> values(64, 1.0F);
  const auto bytes = std::as_bytes(std::span(values));
  const auto matrix =
      backend->load_weight({"w", DType::kF32, Shape{2, 32}, bytes}, WeightUse::kMatmul, {});
  EXPECT_EQ((*matrix)->own_bytes(), 0u);
  const auto vector =
      backend->load_weight({"g", DType::kF16, Shape{128}, bytes}, WeightUse::kVector, {});
  EXPECT_EQ((*vector)->own_bytes(), 512u);
  EXPECT_EQ(backend->packed_bytes({"w", DType::kF32, Shape{2, 32}, bytes}, WeightUse::kMatmul), 0u);
}

TEST(ReferenceBackendErrors, APlanOutsideItsArenaIsRefused) {
  const auto backend = reference_with(1);
  const TinyLayers model;
  PlanBuilder builder(*backend, PlanBuilder::Form::kBlocks, 4);
  Plan plan = model.plan(builder, PlanBuilder::Form::kBlocks).value();
  const auto weights = builder.take_weights();
  plan.arena_bytes /= 2;
  const auto result = backend->compile(std::move(plan));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kInternal);
}

}  // namespace
}  // namespace cyb::test
