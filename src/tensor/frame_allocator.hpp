// FrameAllocator: lends memory for one step. Pools keyed by (size rounded up to the alignment,
// usage) grow to the steady state and then stay: once every size has been seen, alloc() and reset()
// touch no heap. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tensor/buffer.hpp"

namespace cyb {

enum class FrameUsage : std::uint8_t { kActivation, kScratch, kOutput };

class FrameAllocator {
 public:
  /// `budget_bytes`: upper bound of all pools together (0: none). `alignment`: 64 on hosts, 256 for
  /// GPU-visible memory.
  explicit FrameAllocator(std::uint64_t budget_bytes = 0,
                          std::size_t alignment = Buffer::kAlignment);

  /// Memory until the next reset(); contents are those of an earlier step. Errors: OutOfMemory.
  Result<std::span<std::byte>> alloc(std::uint64_t size_bytes, FrameUsage usage);
  /// Takes everything back; spans lent before are invalid from here on.
  void reset() noexcept;

  std::uint64_t pooled_bytes() const noexcept { return pooled_bytes_; }
  std::uint64_t lent_bytes() const noexcept { return lent_bytes_; }
  /// Largest lent_bytes() since construction.
  std::uint64_t peak_bytes() const noexcept { return peak_bytes_; }

 private:
  struct Pool {
    std::uint64_t size;
    FrameUsage usage;
    std::size_t lent = 0;  // blocks[0, lent) are out
    std::vector<Buffer> blocks;
  };
  Pool& pool_for(std::uint64_t size, FrameUsage usage);

  std::vector<Pool> pools_;  // few; searched linearly
  std::uint64_t budget_bytes_, pooled_bytes_ = 0, lent_bytes_ = 0, peak_bytes_ = 0;
  std::size_t alignment_;
};

}  // namespace cyb
