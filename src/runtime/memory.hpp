// What the process may still use and what it has used at most, as the system tells it.
#pragma once

#include <cstdint>

namespace cyb {

/// Bytes that this process can still take without swapping: MemAvailable, limited by the memory
/// groups it is in; 0 when unknown.
std::uint64_t usable_memory_bytes();

/// Largest resident size since the start (VmHWM); 0 when unknown.
std::uint64_t peak_resident_bytes();

}  // namespace cyb
