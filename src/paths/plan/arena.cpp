// First fit: blocks are kept sorted, so the first gap that is long enough is the lowest offset.
#include "paths/plan/arena.hpp"

#include <algorithm>

namespace cyb {

std::uint64_t ArenaPlanner::alloc(std::uint64_t size_bytes) {
  const std::uint64_t size =
      std::max<std::uint64_t>((size_bytes + kAlignment - 1) / kAlignment, 1) * kAlignment;
  std::uint64_t begin = 0;
  auto at = live_.begin();
  for (; at != live_.end() && at->begin < begin + size; ++at) begin = at->end;
  live_.insert(at, Block{begin, begin + size});
  peak_ = std::max(peak_, begin + size);
  return begin;
}

void ArenaPlanner::free(std::uint64_t offset) {
  const auto at =
      std::find_if(live_.begin(), live_.end(), [&](const Block& b) { return b.begin == offset; });
  if (at != live_.end()) live_.erase(at);
}

}  // namespace cyb
