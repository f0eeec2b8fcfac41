// DeviceMemory: where a backend with the reference's kernels keeps weights, KV and intermediates.
// The kernels run only inside execute(); nothing else may touch a block's bytes, so that a device
// whose memory the host cannot see fits in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.hpp"

namespace cyb::reference {

class DeviceBlock {
 public:
  virtual ~DeviceBlock() = default;
  /// Valid to follow inside DeviceMemory::execute() only. At least 64-byte aligned.
  virtual std::byte* data() noexcept = 0;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Zeroed bytes. Errors: OutOfMemory{who}.
  virtual Result<std::unique_ptr<DeviceBlock>> allocate(std::uint64_t size_bytes,
                                                        std::string_view who) = 0;
  /// Runs `work` where the blocks are visible, one call at a time, and returns when it is done.
  virtual void execute(const std::function<void()>& work) = 0;
  /// The host may read blocks between runs: weights need no copy and results no staging.
  virtual bool host_visible() const noexcept = 0;
};

/// Memory of this process.
std::unique_ptr<DeviceMemory> make_host_memory();

}  // namespace cyb::reference
