// FrameAllocator: see the header for the invariant that the steady state allocates nothing.
#include "tensor/frame_allocator.hpp"

#include <algorithm>
#include <memory>

#include "base/checked.hpp"

namespace cyb {

FrameAllocator::FrameAllocator(std::uint64_t budget_bytes, std::size_t alignment)
    : budget_bytes_(budget_bytes), alignment_(std::max(alignment, Buffer::kAlignment)) {}

FrameAllocator::Pool& FrameAllocator::pool_for(std::uint64_t size, FrameUsage usage) {
  for (Pool& pool : pools_) {
    if (pool.size == size && pool.usage == usage) return pool;
  }
  pools_.push_back(Pool{size, usage, 0, {}});
  return pools_.back();
}

Result<std::span<std::byte>> FrameAllocator::alloc(std::uint64_t size_bytes, FrameUsage usage) {
  const auto rounded = checked_round_up(std::max<std::uint64_t>(size_bytes, 1), alignment_);
  // Slack for an alignment above what Buffer gives.
  const auto with_slack =
      checked_add(rounded.value_or(UINT64_MAX), alignment_ - Buffer::kAlignment);
  if (!rounded || !with_slack)
    return fail(out_of_memory("frame", size_bytes, available_memory_bytes()));
  Pool& pool = pool_for(*rounded, usage);
  if (pool.lent == pool.blocks.size()) {
    if (budget_bytes_ != 0 &&
        *with_slack > budget_bytes_ - std::min(budget_bytes_, pooled_bytes_)) {
      return fail(out_of_memory("frame", size_bytes,
                                budget_bytes_ - std::min(budget_bytes_, pooled_bytes_)));
    }
    CYB_ASSIGN(Buffer block, Buffer::allocate(*with_slack, "frame"));
    pool.blocks.push_back(std::move(block));
    pooled_bytes_ += *with_slack;
  }
  Buffer& block = pool.blocks[pool.lent++];
  lent_bytes_ += *rounded;
  peak_bytes_ = std::max(peak_bytes_, lent_bytes_);
  void* start = block.data();
  std::size_t space = block.size();
  start = std::align(alignment_, static_cast<std::size_t>(*rounded), start, space);
  return std::span(static_cast<std::byte*>(start), static_cast<std::size_t>(size_bytes));
}

void FrameAllocator::reset() noexcept {
  for (Pool& pool : pools_) pool.lent = 0;
  lent_bytes_ = 0;
}

}  // namespace cyb
