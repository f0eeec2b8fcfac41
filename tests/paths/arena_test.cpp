// The arena planner: live blocks never overlap, memory is reused, offsets are aligned.
#include "paths/plan/arena.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cyb {
namespace {

TEST(Arena, ReusesTheLowestGapThatFits) {
  ArenaPlanner arena;
  const auto a = arena.alloc(1000), b = arena.alloc(300), c = arena.alloc(5000);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 1024u);
  EXPECT_EQ(c, 1024u + 512u);
  arena.free(a);
  EXPECT_EQ(arena.alloc(1025), c + 5120u) << "1280 bytes do not fit into the gap of 1024";
  EXPECT_EQ(arena.alloc(1024), 0u);
}

TEST(Arena, EmptyTensorsHaveTheirOwnAddress) {
  ArenaPlanner arena;
  EXPECT_NE(arena.alloc(0), arena.alloc(0));
}

TEST(Arena, LiveBlocksNeverOverlapUnderRandomUse) {
  std::mt19937_64 random(7);
  ArenaPlanner arena;
  struct Live {
    std::uint64_t begin, size;
  };
  std::vector<Live> live;
  std::uint64_t sum = 0, peak_sum = 0;
  for (int i = 0; i < 2000; ++i) {
    if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
      const std::size_t at = random() % live.size();
      arena.free(live[at].begin);
      sum -= live[at].size;
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    const std::uint64_t size = random() % 100000;
    const std::uint64_t begin = arena.alloc(size);
    EXPECT_EQ(begin % ArenaPlanner::kAlignment, 0u);
    for (const Live& other : live) {
      EXPECT_TRUE(begin + size <= other.begin || other.begin + other.size <= begin);
    }
    live.push_back({begin, size});
    sum += size;
    peak_sum = std::max(peak_sum, sum);
    EXPECT_LE(begin + size, arena.peak_bytes());
  }
  EXPECT_LT(arena.peak_bytes(), 2 * peak_sum) << "first fit wastes less than half here";
}

}  // namespace
}  // namespace cyb
