// Bytes by pool, for people and as JSON.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "runtime/memory.hpp"

namespace cyb::cli {

/// {"weights_mapped": N, ..., "total": N}
Json memory_json(const MemoryPools& pools);
/// "weights_mapped 28.7 MiB, ..., total 120.3 MiB": pools of 0 bytes are left out.
std::string memory_text(const MemoryPools& pools);

}  // namespace cyb::cli
