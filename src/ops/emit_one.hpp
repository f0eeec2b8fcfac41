// Helpers of decompositions: one op with one output, absent optional inputs left out at the end.
#pragma once

#include <initializer_list>

#include "ops/op.hpp"

namespace cyb {

Result<ValueId> emit_one(OpSink& sink, const Op& op, std::initializer_list<ValueId> inputs);

/// Value k of a list of inputs, kNoValue past the end.
inline ValueId value_at(std::span<const ValueId> values, std::size_t k) noexcept {
  return k < values.size() ? values[k] : kNoValue;
}

}  // namespace cyb
