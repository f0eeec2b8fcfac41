// Counts calls of the global operator new while in scope (all threads). The replacement is linked
// into every test binary.
#pragma once

#include <cstdint>

namespace cyb::test {

std::uint64_t total_news() noexcept;

class AllocationCount {
 public:
  AllocationCount() noexcept : start_(total_news()) {}
  std::uint64_t news() const noexcept { return total_news() - start_; }

 private:
  std::uint64_t start_;
};

}  // namespace cyb::test
