// 64 prompts, each with a marker of its own, alone and in batches of every kind: the bits of an
// answer never depend on the company, on the pages that are left, on kept prefixes, on threads or
// on guesses. V11, V13.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "runtime/scheduler.hpp"
#include "support/engine_support.hpp"
#include "support/scheduler_support.hpp"

namespace cyb::test {
namespace {

constexpr std::size_t kPrompts = 64;
constexpr std::uint32_t kBatches[] = {2, 3, 7, 16, 44, 64};

std::shared_ptr<Engine> engine_of(unsigned threads, std::uint32_t sequences) {
  EngineOptions options;
  options.backend = "cpu";
  options.n_threads = threads;
  options.chunk_tokens = 128;
  options.max_outputs = 64;
  options.max_sequences = sequences;
  options.ctx_tokens = 64;
  return tiny_engine("llama3", options);
}

/// A beginning that all share, then the marker: four ids that no other prompt has in this order.
std::vector<GenerateRequest> marked_requests(bool guesses) {
  std::vector<GenerateRequest> out(kPrompts);
  for (std::size_t i = 0; i < kPrompts; ++i) {
    const auto number = static_cast<std::int32_t>(i);
    out[i].prompt = some_ids(18, 7);
    const std::int32_t marker[] = {3 + number, 67 + number, 131 + number, 200 - number};
    out[i].prompt.insert(out[i].prompt.end(), std::begin(marker), std::end(marker));
    const auto tail = some_ids(i % 9, number);
    out[i].prompt.insert(out[i].prompt.end(), tail.begin(), tail.end());
    out[i].options.max_tokens = static_cast<std::uint32_t>(6 + i % 5);
    out[i].options.seed = 1000 + i;
    out[i].options.logprobs = 3;
    out[i].options.ignore_stop_ids = true;
    if (i % 2 == 0) out[i].options.sampling.temperature = 1.0;
    if (guesses) out[i].options.speculation.lookup_tokens = 4;
  }
  return out;
}

std::vector<GenerateResult> solo_answers() {
  const auto engine = engine_of(1, 1);
  std::vector<GenerateResult> out;
  for (const GenerateRequest& request : marked_requests(false)) {
    out.push_back(solo_answer(engine, request, 0));
  }
  return out;
}

/// All of them, `batch` at a time, in an order of `shuffle`.
void expect_solo_bits(Scheduler& scheduler, std::uint32_t batch, unsigned shuffle, bool guesses) {
  static const std::vector<GenerateResult> solo = solo_answers();
  auto requests = marked_requests(guesses);
  std::vector<std::size_t> order(kPrompts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::shuffle(order, std::mt19937(shuffle));
  std::vector<Heard> heard(kPrompts);
  for (std::size_t begin = 0; begin < kPrompts; begin += batch) {
    for (std::size_t at = begin; at < std::min<std::size_t>(begin + batch, kPrompts); ++at) {
      value(scheduler.submit(requests[order[at]], ears(heard[order[at]])));
    }
    run_all(scheduler);
  }
  for (std::size_t i = 0; i < kPrompts; ++i) {
    SCOPED_TRACE("prompt " + std::to_string(i) + ", batches of " + std::to_string(batch));
    ASSERT_FALSE(heard[i].error.has_value()) << heard[i].error->text();
    ASSERT_EQ(heard[i].results.size(), 1u);
    expect_same_answer(heard[i].results[0], solo[i]);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

TEST(BatchMarkers, EveryBatchAndOrderHasTheSoloBits) {
  const auto engine = engine_of(2, 64);
  for (const std::uint32_t batch : kBatches) {
    Scheduler scheduler(engine, {.max_running = batch, .cached_prefixes = 0}, false);
    expect_solo_bits(scheduler, batch, batch, false);
    EXPECT_EQ(scheduler.stats().reused_tokens, 0u);
  }
}

TEST(BatchMarkers, KeptPrefixesColdAndWarm) {
  const auto engine = engine_of(2, 64);
  Scheduler scheduler(engine, {.max_running = 16, .cached_prefixes = 64}, false);
  expect_solo_bits(scheduler, 16, 1, false);
  const std::uint64_t cold = scheduler.stats().reused_tokens;
  expect_solo_bits(scheduler, 7, 2, false);
  EXPECT_GT(scheduler.stats().reused_tokens, 2 * cold);
}

TEST(BatchMarkers, FewPagesThatForceEviction) {
  const auto engine = engine_of(2, 3);  // 12 pages for 44 answers of 2 or 3
  Scheduler scheduler(engine, {.max_running = 44, .cached_prefixes = 16}, false);
  expect_solo_bits(scheduler, 44, 3, false);
  EXPECT_GT(scheduler.stats().evicted_prefixes + scheduler.stats().preempted, 0u);
}

TEST(BatchMarkers, OneToThreeThreads) {
  for (const unsigned threads : {1U, 2U, 3U}) {
    const auto engine = engine_of(threads, 16);
    Scheduler scheduler(engine, {.max_running = 16}, false);
    expect_solo_bits(scheduler, 64, threads, false);
  }
}

TEST(BatchMarkers, WithGuesses) {
  const auto engine = engine_of(2, 16);
  for (const std::uint32_t batch : {3U, 16U}) {
    Scheduler scheduler(engine, {.max_running = batch}, false);
    expect_solo_bits(scheduler, batch, batch, true);
  }
}

}  // namespace
}  // namespace cyb::test
