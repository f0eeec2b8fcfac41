// Indices that come as data.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace cyb {

/// Index in 0..n-1 from one that may count from the end; InvalidInput otherwise.
Result<std::size_t> checked_index(std::string_view op, std::int64_t index, std::int64_t n);

}  // namespace cyb
