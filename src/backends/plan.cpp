// What every backend does alike with the tensors of a run.
#include "backends/plan.hpp"

#include <fmt/format.h>

#include "backends/backend.hpp"

namespace cyb {

Result<void> check_tensors(const Plan& plan, const StepParams& params) {
  if (params.tensors.size() != plan.tensors.size())
    return fail(internal_error("a run with another number of tensors than its plan"));
  for (std::size_t i = 0; i < params.tensors.size(); ++i) {
    const TensorView& given = params.tensors[i];
    const auto want = plan.tensors[i].bind({});
    if (!want || given.dtype != plan.tensors[i].dtype || given.shape != *want)
      return fail(internal_error(fmt::format("tensor {} does not fit its plan", i)));
  }
  return {};
}

TensorView present_tensor(TensorView tensor) noexcept {
  static constexpr std::byte kNothing{};
  if (tensor.shape.count() == 0) tensor.data = &kNothing;
  return tensor;
}

Result<std::span<const float>> Executable::output(std::size_t i) {
  CYB_ASSIGN(const TensorView tensor, output_tensor(i));
  if (tensor.dtype != DType::kF32) return fail(internal_error("an output that is not f32"));
  return std::span<const float>(tensor.as<float>(), static_cast<std::size_t>(tensor.shape.count()));
}

}  // namespace cyb
