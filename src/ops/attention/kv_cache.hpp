// KvCache: appends this run's K and V rows to the state of one layer and returns all rows.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct KvCacheAttrs {
  std::uint32_t layer;
  std::uint32_t window;  // 0: keep all
  static KvCacheAttrs from(const Attrs& a) { return {a.u32(0), a.u32(1)}; }
  Attrs to_attrs() const { return {{std::int64_t{layer}, std::int64_t{window}}}; }
};

}  // namespace cyb
