// The layouts of a plan with convolutions: which tensors [B, C, axes...] lie in memory with their
// channels last, where a copy in the other order is made, and where everything lies then. What
// follows a convolution goes on in its order as far as it can; transposes between the two orders
// become other names of the same memory.
#pragma once

#include <vector>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

/// Shapes are those of the memory: [B, axes..., C] in a step with its channels last, attributes
/// too, except for the windows and sizes of convolutions, pools and resizes, which count axes
/// alone.
struct LaidStep {
  Step step;
  bool channels_last = false;
  std::uint32_t owner = 0;  // step of the plan that it belongs to
};

struct LaidPlan {
  std::vector<LaidStep> steps;
  std::vector<Operand> outputs;
  std::uint64_t arena_bytes = 0;
};

/// [B, C, axes...] -> [B, axes..., C] and back; rank 3 and more.
Shape channels_last(const Shape& shape);
Shape channels_first(const Shape& shape);

/// A Conv or ConvTranspose with stored f32 weights, finite, and a stored bias or none, that
/// make_direct_step() or make_windows_step() takes.
bool is_direct(const Step& step);
/// `step` in the order of memory.
Result<conv::Problem> conv_problem(const Step& step);

/// The same steps where there is no such convolution.
LaidPlan lay_out(const Plan& plan);

/// The step of an op in the order of its plan; null: no kernel for exactly these operands.
Result<StepPtr> make_step(const Step& step, bool channels_last, Build& build);
/// That step does what is fused into it.
bool does_fused_ops(const Step& step, bool channels_last, const Build& build);

Result<StepPtr> make_direct_step(const Step& step, Build& build);
/// Rows of f32 times a stored f32 matrix, with what is fused into it: a convolution of one tap.
/// Not for steps of language models, whose sums do not depend on the plan.
bool is_direct_product(const Step& step, const Build& build);
Result<StepPtr> make_direct_product(const Step& step, Build& build);
/// A ConvTranspose in row-major order whose windows lie side by side: kernel = stride, no pads.
bool has_windows_apart(const Step& step);
Result<StepPtr> make_windows_step(const Step& step, Build& build);
/// Pools, resizes and sums over all axes with channels last.
Result<StepPtr> make_pixel_step(const Step& step, Build& build);
/// For a step in row-major order. `plan` tells which outputs are read.
bool has_pixel_step(const Step& step, const Plan& plan);

}  // namespace cyb::cpu
