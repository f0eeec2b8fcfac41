// What the process may still use and what it has used at most, as the system tells it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cyb {

/// Bytes by what they are for, in the memory of this process.
struct MemoryPools {
  std::uint64_t weights_mapped = 0;  // tensors that are read where the model file is mapped
  std::uint64_t weights_packed = 0;  // packed ones that are mapped from the cache folder
  std::uint64_t weights_own = 0;     // packed, decoded or computed in memory
  std::uint64_t kv = 0;              // K and V pages
  std::uint64_t run = 0;             // activations, scratch, rope tables
  std::uint64_t text = 0;            // vocabulary, tokenizer, chat template
  std::uint64_t process = 0;         // what the process has beside the model: its code, stacks

  std::uint64_t total() const noexcept {
    return weights_mapped + weights_packed + weights_own + kv + run + text + process;
  }
};

struct MemoryPool {
  std::string_view name;  // of the field
  std::uint64_t bytes = 0;
};
/// In the order of the fields.
std::array<MemoryPool, 7> memory_pools(const MemoryPools& pools) noexcept;

/// Bytes that this process can still take without swapping: MemAvailable, limited by the memory
/// groups it is in; 0 when unknown.
std::uint64_t usable_memory_bytes();

/// Bytes that the allocator has handed out; 0 where it does not say.
std::uint64_t allocated_bytes() noexcept;

/// Resident size now (VmRSS); 0 when unknown.
std::uint64_t resident_bytes();

/// Code of this program that is not resident yet, and will be where it is used; 0 when unknown.
std::uint64_t unread_code_bytes();

/// Largest resident size since the start (VmHWM); 0 when unknown.
std::uint64_t peak_resident_bytes();

}  // namespace cyb
