// The pool does every share of a round once, rounds follow one another, a thread that is away is
// not waited for, and a round allocates nothing.
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

/// Rounds of a body (round, share, n_shares), counted from 0.
template <class F>
void run_rounds(ThreadPool& pool, int n_rounds, F body) {
  struct Work {
    F& body;
    int round, n_rounds;
  } work{body, -1, n_rounds};
  pool.run(RoundsTask{[](void* self) noexcept {
                        auto& w = *static_cast<Work*>(self);
                        return ++w.round < w.n_rounds;
                      },
                      [](void* self, unsigned share, unsigned n) noexcept {
                        auto& w = *static_cast<Work*>(self);
                        w.body(w.round, share, n);
                      },
                      &work});
}

TEST_P(Pool, RoundsFollowOneAnother) {
  ThreadPool pool(GetParam());
  constexpr int kRounds = 2000;
  std::vector<int> values(GetParam(), -1);  // the pool orders a round after the one before
  std::atomic<int> wrong{0};
  for (int repeat = 0; repeat < 5; ++repeat) {
    run_rounds(pool, kRounds, [&](int round, unsigned share, unsigned n) {
      if (round % 2 == 0) {
        values[share] = round;
      } else {
        for (unsigned i = 0; i < n; ++i) wrong.fetch_add(values[i] == round - 1 ? 0 : 1);
      }
    });
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Pool, EveryShareIsDoneOnceInEachRound) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> done(GetParam());
  run_rounds(pool, 500, [&](int round, unsigned share, unsigned) {
    // Now and then one is late, and the others are asleep when it ends.
    if (round % 50 == 0 && share == static_cast<unsigned>(round / 50) % GetParam())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done[share].fetch_add(1);
  });
  for (const auto& count : done) EXPECT_EQ(count.load(), 500);
}

TEST_P(Pool, WakesAfterParking) {
  ThreadPool pool(GetParam());
  std::atomic<unsigned> ran{0};
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    run_rounds(pool, 2, [&](int, unsigned, unsigned) { ran.fetch_add(1); });
  }
  EXPECT_EQ(ran.load(), 10 * GetParam());
}

TEST(PoolUse, AThreadThatIsAwayIsNotWaitedFor) {
  // With far more threads than processors most are away at any time: their shares are done by those
  // that are there. One thread that does all would need each of them to be woken otherwise.
  ThreadPool pool(64);
  std::vector<std::thread::id> who(64);
  std::size_t n_lent = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // all are asleep
    run_rounds(pool, 1,
               [&](int, unsigned share, unsigned) { who[share] = std::this_thread::get_id(); });
    for (unsigned share = 1; share < 64; ++share) n_lent += who[share] == who[0] ? 1 : 0;
  }
  EXPECT_GT(n_lent, 20u);
}

TEST_P(Pool, RegionsAllocateNothing) {
  ThreadPool pool(GetParam());
  std::atomic<unsigned> sum{0};
  const auto both = [&] {
    run_rounds(pool, 2, [&](int, unsigned, unsigned) { sum.fetch_add(1); });
  };
  both();
  const test::AllocationCount count;
  for (int round = 0; round < 50; ++round) both();
  EXPECT_EQ(count.news(), 0u);
  EXPECT_EQ(sum.load(), 102 * GetParam());
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
