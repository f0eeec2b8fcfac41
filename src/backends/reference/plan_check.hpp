// check_plan: everything about a plan that can be wrong is found when it is compiled, not when it
// runs.
#pragma once

#include "backends/plan.hpp"
#include "base/result.hpp"

namespace cyb::reference {

struct PlanFacts {
  std::int64_t vocab_size = 0;  // rows of the table that the run's ids index; 0: none
  std::uint32_t kv_layers = 0;  // 1 + the highest layer of a step with a cache; 0: none
};

/// Operands lie inside the arena, weights are of this backend, shapes follow each op's rule.
Result<PlanFacts> check_plan(const Plan& plan);

}  // namespace cyb::reference
