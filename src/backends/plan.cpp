// What every backend does alike with the tensors of a run.
#include "backends/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

FusedSlots fused_slots(const Step& step) {
  const std::size_t n = step.fused.size() + 1;
  std::vector<std::size_t> last_use(n, 0);  // fused op that reads a result last
  for (std::size_t i = 0; i < step.fused.size(); ++i) {
    for (const FusedInput& in : step.fused[i].inputs) {
      if (in.is_result) last_use[in.index] = i;
    }
  }
  FusedSlots slots{.of = std::vector<std::uint32_t>(n, 0)};
  for (std::size_t result = 1; result < n; ++result) {
    const auto taken = [&](std::uint32_t slot) {
      for (std::size_t r = 0; r < result; ++r) {
        if (slots.of[r] == slot && last_use[r] > result - 1) return true;
      }
      return false;
    };
    while (taken(slots.of[result])) ++slots.of[result];
    slots.n = std::max(slots.n, slots.of[result] + 1);
  }
  return slots;
}

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
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
