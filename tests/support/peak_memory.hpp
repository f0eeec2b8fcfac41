// Peak resident size of this process, for tests of what a refused file costs.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace cyb::test {

/// Peak resident size in KiB since the last call of reset_peak; 0 where the system does not say.
inline std::int64_t peak_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6));
  }
  return 0;
}

inline std::int64_t reset_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_kib();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::int64_t kRefusalPeakKib = 1024 * 1024;  // shadow memory is not ours
#else
inline constexpr std::int64_t kRefusalPeakKib = 64 * 1024;
#endif

}  // namespace cyb::test
