// The backend `reference`: every op by its f32 reference, exact, KV in f32. The ground truth; never
// tuned.
#pragma once

#include <memory>
#include <string_view>

#include "backends/backend.hpp"
#include "backends/reference/device_memory.hpp"

namespace cyb {

namespace reference {

/// The reference's kernels over another memory (a device whose memory the host cannot see).
Result<std::shared_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options,
                                              std::shared_ptr<DeviceMemory> memory);

}  // namespace reference

/// The factory of backend_list.inc. The reference has no ISA and is always exact: those options
/// change nothing.
Result<std::shared_ptr<Backend>> create_reference_backend(const BackendOptions& options);

}  // namespace cyb
