// Integer tensors that are made of dimensions: what the ops that compute shapes do to them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "import/onnx/tensor.hpp"
#include "ops/op.hpp"

namespace cyb::onnx {

/// Longest tensor that is followed.
inline constexpr std::int64_t kMaxFollowed = 256;

/// Elements of the output `out` of an op whose inputs have `value` where they are known; nullopt
/// where they cannot be said.
std::optional<std::vector<Dim>> follow_dims(const Op& op, std::span<const TensorSpec> inputs,
                                            const TensorSpec& out);

/// An integer tensor of `dtype`. Errors: Format where a value does not fit.
Result<HostTensor> int_tensor(std::span<const std::int64_t> values, const Shape& shape,
                              DType dtype);

}  // namespace cyb::onnx
