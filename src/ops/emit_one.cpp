// Emitting one op of a decomposition.
#include "ops/emit_one.hpp"

namespace cyb {

Result<ValueId> emit_one(OpSink& sink, const Op& op, std::initializer_list<ValueId> inputs) {
  std::size_t n = inputs.size();
  while (n > 0 && inputs.begin()[n - 1] == kNoValue) --n;
  CYB_ASSIGN(const std::vector<ValueId> outputs, sink.emit(op, std::span(inputs.begin(), n)));
  if (outputs.size() != 1) return fail(internal_error("a decomposition expects one output"));
  return outputs[0];
}

}  // namespace cyb
