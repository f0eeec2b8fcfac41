// Host memory as a device: buffers, and one run at a time.
#include "backends/reference/device_memory.hpp"

#include <mutex>

#include "tensor/buffer.hpp"

namespace cyb::reference {
namespace {

class HostBlock final : public DeviceBlock {
 public:
  explicit HostBlock(Buffer buffer) : buffer_(std::move(buffer)) {}
  std::byte* data() noexcept override { return buffer_.data(); }

 private:
  Buffer buffer_;
};

class HostMemory final : public DeviceMemory {
 public:
  Result<std::unique_ptr<DeviceBlock>> allocate(std::uint64_t size_bytes,
                                                std::string_view who) override {
    CYB_ASSIGN(Buffer buffer, Buffer::allocate(size_bytes, who));
    return std::make_unique<HostBlock>(std::move(buffer));
  }
  void execute(const std::function<void()>& work) override {
    const std::scoped_lock lock(mutex_);
    work();
  }
  bool host_visible() const noexcept override { return true; }

 private:
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_host_memory() {
  return std::make_unique<HostMemory>();
}

}  // namespace cyb::reference
