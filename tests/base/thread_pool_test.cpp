// The pool runs every thread once a region, its barrier separates phases, and a region allocates
// nothing.
#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/cpu_count.hpp"
#include "support/alloc_count.hpp"

namespace cyb {
namespace {

class Pool : public testing::TestWithParam<unsigned> {};

TEST_P(Pool, EveryThreadRunsOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> runs(GetParam(),
                        0);  // each thread writes its own; the end of run() publishes them
  auto body = [&](unsigned thread, unsigned n) {
    if (n == GetParam()) ++runs[thread];
  };
  for (int round = 1; round <= 300; ++round) {
    pool.run(body);
    for (const int count : runs) ASSERT_EQ(count, round);
  }
}

TEST_P(Pool, BarrierSeparatesPhases) {
  ThreadPool pool(GetParam());
  constexpr int kPhases = 200;
  std::vector<int> values(GetParam(), 0);
  std::atomic<int> wrong{0};
  auto body = [&](unsigned thread, unsigned n) {
    for (int phase = 1; phase <= kPhases; ++phase) {
      values[thread] = phase;
      pool.barrier();
      if (values[(thread + 1) % n] != phase) wrong.fetch_add(1);
      pool.barrier();
    }
  };
  pool.run(body);
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Pool, WakesAfterParking) {
  ThreadPool pool(GetParam());
  std::atomic<unsigned> ran{0};
  auto body = [&](unsigned thread, unsigned) {
    // A late thread makes the others park in the barrier.
    if (thread == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool.barrier();
    ran.fetch_add(1);
  };
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    pool.run(body);
  }
  EXPECT_EQ(ran.load(), 5 * GetParam());
}

TEST_P(Pool, RegionsAllocateNothing) {
  ThreadPool pool(GetParam());
  std::atomic<unsigned> sum{0};
  auto body = [&](unsigned, unsigned) {
    pool.barrier();
    sum.fetch_add(1);
  };
  pool.run(body);
  const test::AllocationCount count;
  for (int round = 0; round < 50; ++round) pool.run(body);
  EXPECT_EQ(count.news(), 0u);
  EXPECT_EQ(sum.load(), 51 * GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pool, testing::Values(1u, 2u, 3u, 8u));

TEST(PoolUse, CallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<int> shared(3, 0);
  auto body = [&](unsigned thread, unsigned) { ++shared[thread]; };
  std::vector<std::jthread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) pool.run(body);
    });
  }
  callers.clear();
  EXPECT_EQ(shared, std::vector<int>(3, 400));
}

TEST(PoolUse, DefaultSize) {
  EXPECT_GE(default_threads(), 1u);
  EXPECT_LE(usable_cores(), usable_processors());
  EXPECT_EQ(ThreadPool(0).size(), default_threads());
}

}  // namespace
}  // namespace cyb
