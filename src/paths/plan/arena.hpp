// ArenaPlanner: offsets of intermediates by lifetime. Deterministic first fit over free gaps; no
// memory of its own.
#pragma once

#include <cstdint>
#include <vector>

namespace cyb {

class ArenaPlanner {
 public:
  static constexpr std::uint64_t kAlignment = 256;

  /// Lowest offset where `size_bytes` fit among the live blocks.
  std::uint64_t alloc(std::uint64_t size_bytes);
  /// Ends the life of the block at `offset`.
  void free(std::uint64_t offset);
  /// Highest end of any block so far.
  std::uint64_t peak_bytes() const noexcept { return peak_; }

 private:
  struct Block {
    std::uint64_t begin, end;
  };
  std::vector<Block> live_;  // ascending
  std::uint64_t peak_ = 0;
};

}  // namespace cyb
