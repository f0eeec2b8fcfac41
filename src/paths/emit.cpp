// Emit helpers shared by all sinks.
#include "paths/emit.hpp"

#include "ops/emit_one.hpp"

namespace cyb {

Result<ValueId> Emit::one(const Op& op, std::initializer_list<ValueId> inputs) {
  return emit_one(*this, op, inputs);
}

}  // namespace cyb
