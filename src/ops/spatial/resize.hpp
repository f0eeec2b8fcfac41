// What of Resize is decided by shapes and attributes: which inputs an output along an axis is made
// of.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op.hpp"

namespace cyb {

/// One or two inputs of an output along an axis; a weight of 0 is no input.
struct ResizeTap {
  std::size_t first = 0, second = 0;
  double first_weight = 1.0, second_weight = 0.0;
};
using ResizeTaps = std::vector<ResizeTap>;  // one per output

/// Taps of every axis. `in`: the inputs of the op, the data of input 0 not looked at. None where an
/// output needs more than two inputs, lies outside, or an axis but the last two changes.
/// Errors: InvalidInput, as the reference.
Result<std::optional<std::vector<ResizeTaps>>> resize_taps(const Attrs& attrs,
                                                           std::span<const TensorView> in);

}  // namespace cyb
