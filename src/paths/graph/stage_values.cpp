// Values that need no step.
#include "paths/graph/stage_values.hpp"

#include <algorithm>

namespace cyb {

bool is_view(OpTag tag) noexcept {
  switch (tag) {
    case OpTag::kReshape:
    case OpTag::kReshapeTo:
    case OpTag::kFlatten:
    case OpTag::kSqueeze:
    case OpTag::kUnsqueeze:
    case OpTag::kIdentity:
      return true;
    default:
      return false;
  }
}

bool concrete(const TensorSpec& spec) {
  return std::ranges::all_of(spec.dims, [](const Dim& d) { return d.is_constant(); });
}

bool has_number_value(const TensorSpec& spec) {
  if (!spec.value || !concrete(spec)) return false;
  if (spec.dtype != DType::kI64 && spec.dtype != DType::kI32) return false;
  return std::ranges::all_of(*spec.value, [](const Dim& d) { return d.is_constant(); });
}

Result<HostTensor> tensor_of_value(const TensorSpec& spec) {
  CYB_ASSIGN(HostTensor tensor, HostTensor::allocate(spec.dtype, *spec.bind({})));
  for (std::size_t i = 0; i < spec.value->size(); ++i) {
    const std::int64_t element = (*spec.value)[i].constant();
    if (spec.dtype == DType::kI64) tensor.bytes.as<std::int64_t>()[i] = element;
    if (spec.dtype == DType::kI32)
      tensor.bytes.as<std::int32_t>()[i] = static_cast<std::int32_t>(element);
  }
  return tensor;
}

}  // namespace cyb
