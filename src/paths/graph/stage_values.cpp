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

Result<void> check_size(const TensorSpec& spec, const std::string& label) {
  constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 40;
  const auto shape = spec.bind({});
  const auto size = shape ? tensor_bytes(spec.dtype, *shape) : std::nullopt;
  if (size && *size <= kMaxTensorBytes) return {};
  return fail(out_of_memory("graph", size.value_or(UINT64_MAX), kMaxTensorBytes).in(label));
}

std::string op_names(const Step& step) {
  std::string names(op_info(step.op.tag).name);
  for (const FusedOp& fused : step.fused) names += "+" + std::string(op_info(fused.op.tag).name);
  return names;
}

}  // namespace cyb
