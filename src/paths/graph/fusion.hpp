// Fusion of a stage: which elementwise nodes run as part of the step of an earlier node. A group
// has one result; every other value of it is read inside alone, and all that it reads from outside
// is there when its first node runs, so that the order of the rest does not change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "paths/graph/tensor_program.hpp"

namespace cyb {

struct FusionInput {
  const TensorProgram& program;
  std::uint32_t begin, end;           // nodes of the stage
  std::span<const TensorSpec> specs;  // per value, concrete for those of the stage
  std::vector<bool> is_step;          // per node from `begin` on: it computes something
};

class Fusion {
 public:
  /// Asks whether the backend takes `members` into the step of `head`.
  using Fuses = std::function<bool(std::uint32_t head, std::span<const std::uint32_t> members)>;

  Fusion() = default;
  static Fusion find(const FusionInput& input, const Fuses& fuses);

  /// The node whose step `node` is a part of; itself for most.
  std::uint32_t head(std::uint32_t node) const noexcept {
    return heads_.empty() ? node : heads_[node - begin_];
  }
  /// The nodes fused into the step of `head`, ascending; the last one gives the result.
  std::span<const std::uint32_t> members(std::uint32_t head) const noexcept {
    const auto found = members_.find(head);
    return found == members_.end() ? std::span<const std::uint32_t>() : found->second;
  }

 private:
  class Finder;

  std::uint32_t begin_ = 0;
  std::vector<std::uint32_t> heads_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> members_;
};

}  // namespace cyb
