// Steps seen in both orders: which can run with channels last, and what they are then.
#pragma once

#include "backends/cpu/layout.hpp"

namespace cyb::cpu {

/// Ones in front up to `rank` dimensions.
Shape with_rank(const Shape& shape, std::size_t rank);
/// b is a view of a that has the same channels.
bool keeps_channels(const Shape& a, const Shape& b);
/// Attributes of a Permute from one order to the other.
Attrs permutation(std::size_t rank, bool to_last);
Attrs identity(std::size_t rank);
/// The step is the transpose [B, C, axes...] -> [B, axes..., C], or the one back, of f32.
bool transposes(const Step& step, bool to_last);

/// A BatchNorm whose statistics are stored and finite.
bool is_affine(const Step& step);
/// Ops over one tensor whose other inputs, if any, have no channels.
bool is_pixel_op(OpTag tag);

/// All operands with the shapes of channels last.
Step shapes_last(const Step& step);
Op op_with_channels_last(const Op& op, std::size_t rank);
/// The step may run with channels last. `plan` tells which outputs are read.
bool can_follow(const Step& step, const Plan& plan);

}  // namespace cyb::cpu
