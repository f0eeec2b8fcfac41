// Every backend and ISA of this machine, in each numeric mode: what conformance runs on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.hpp"

namespace cyb::test {

struct Target {
  std::string name;  // "cpu avx2 exact"
  std::shared_ptr<Backend> backend;
};

/// Made once. Throws std::runtime_error if one cannot start.
const std::vector<Target>& all_targets();

}  // namespace cyb::test
