// How a graph of tensors is run.
#pragma once

#include <cstdint>

namespace cyb {

struct TensorOptions {
  bool fuse = true;      // elementwise nodes become part of the steps before them
  bool in_place = true;  // an elementwise step may write over an input that ends there
  std::uint64_t plan_bytes = std::uint64_t{1} << 30;  // of plans kept for shapes seen before
};

}  // namespace cyb
