// The rows of the limit table.
#include "base/limits.hpp"

#include <array>

#include "base/transfer_limits.hpp"

namespace cyb {
namespace {

constexpr std::array kLimits = {
#define CYB_LIMIT_ROW(constant, name, value, unit, what) Limit{name, value, unit, what},
    CYB_LIMITS(CYB_LIMIT_ROW) CYB_TRANSFER_LIMITS(CYB_LIMIT_ROW)
#undef CYB_LIMIT_ROW
};

}  // namespace

std::span<const Limit> all_limits() noexcept {
  return kLimits;
}

}  // namespace cyb
