// Which ops are elementwise: one output, each element of it a function of the elements of the
// inputs at the same (broadcast) place.
#pragma once

#include "ops/op.hpp"

namespace cyb {

bool is_elementwise(OpTag tag) noexcept;

/// The op may write its output over input `input`, where the two have as many elements of the same
/// dtype and no other input lies there: an element is read before its place is written.
bool works_in_place(OpTag tag, std::size_t input) noexcept;

}  // namespace cyb
