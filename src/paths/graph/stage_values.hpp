// What shapes alone say about the values of a stage.
#pragma once

#include "backends/plan.hpp"
#include "paths/graph/tensor_program.hpp"

namespace cyb {

/// Ops whose result is the same bytes under another shape.
bool is_view(OpTag tag) noexcept;
/// All dimensions are numbers.
bool concrete(const TensorSpec& spec);
/// True if the elements are known numbers: the tensor needs no step.
bool has_number_value(const TensorSpec& spec);
/// The tensor of such a spec.
Result<HostTensor> tensor_of_value(const TensorSpec& spec);
/// OutOfMemory for a concrete tensor so large that sums of offsets could wrap.
Result<void> check_size(const TensorSpec& spec, const std::string& label);
/// "Conv+Sigmoid+Mul".
std::string op_names(const Step& step);

}  // namespace cyb
