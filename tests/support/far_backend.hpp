// The backend `far`: the reference's kernels over memory that the host may not touch. The region is
// protected by the OS except while its own worker thread runs inside sync() (or an upload);
// whatever else follows a pointer into it dies.
#pragma once

#include <memory>

#include "backends/backend.hpp"
#include "backends/reference/device_memory.hpp"

namespace cyb::test {

/// Address space reserved, not memory used. Errors: BackendInit.
Result<std::shared_ptr<reference::DeviceMemory>> make_far_memory();

/// Not in backend_list.inc: only tests make it.
Result<std::shared_ptr<Backend>> make_far_backend(const BackendOptions& options = {});

}  // namespace cyb::test
