// Emit helpers shared by all sinks.
#include "paths/emit.hpp"

namespace cyb {

Result<ValueId> Emit::one(const Op& op, std::initializer_list<ValueId> inputs) {
  CYB_ASSIGN(const std::vector<ValueId> outputs,
             emit(op, std::span(inputs.begin(), inputs.size())));
  if (outputs.size() != 1) return fail(internal_error("op with one output expected"));
  return outputs[0];
}

}  // namespace cyb
