// CpuBackend: SIMD kernels of the ISA found at run time, weights as panels, paged KV in a layout of
// its own.
#pragma once

#include "backends/backend.hpp"

namespace cyb {

Result<std::shared_ptr<Backend>> create_cpu_backend(const BackendOptions& options);

}  // namespace cyb
