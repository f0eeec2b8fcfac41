// The names are those of MemoryPools.
#include "cli/memory_text.hpp"

#include "cli/output.hpp"

namespace cyb::cli {

Json memory_json(const MemoryPools& pools) {
  Json out;
  for (const MemoryPool& pool : memory_pools(pools)) out[std::string(pool.name)] = pool.bytes;
  out["total"] = pools.total();
  return out;
}

std::string memory_text(const MemoryPools& pools) {
  std::string out;
  for (const MemoryPool& pool : memory_pools(pools)) {
    if (pool.bytes != 0) out += std::string(pool.name) + " " + size_text(pool.bytes) + ", ";
  }
  return out + "total " + size_text(pools.total());
}

}  // namespace cyb::cli
