// The tensors part: reading with every check that needs no weight bytes, and canonical writing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/model.hpp"
#include "model/scale.hpp"

namespace cyb {

/// Reads the part. Entries come back in ascending offset order. Errors: F02, F05, F09, F20..F29,
/// F50.
Result<std::vector<TensorEntry>> read_tensor_index(std::string_view text,
                                                   std::uint64_t weights_bytes,
                                                   LegacyEncodings legacy);

/// Rules of one tensor that depend on nothing else: F20, F22, F29. Returns its bytes.
Result<std::uint64_t> stored_tensor_bytes(std::string_view name, DType dtype, const Shape& shape);

/// F28 for every ternary tensor, and for every fp8 tensor that has a scale: f32 [1] or [rows], of
/// an fp8 matrix also [ceil(rows / 128), ceil(columns / 128)]. `find` returns null for an unknown
/// name.
Result<void> check_scale_siblings(const std::vector<TensorEntry>& tensors,
                                  const std::function<const TensorEntry*(std::string_view)>& find);

/// Elements of all tensors but `cyb.*` and the `.scale` siblings of other tensors. Nullopt on
/// overflow.
std::optional<std::uint64_t> count_parameters(
    const std::vector<TensorEntry>& tensors,
    const std::function<const TensorEntry*(std::string_view)>& find);

/// Canonical text of the part. Entries are in ascending offset order.
std::string write_tensor_index(const std::vector<TensorEntry>& tensors);

}  // namespace cyb
