// A protected region with a first-fit allocator and one worker thread.
#include "support/far_backend.hpp"

#include <sys/mman.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "backends/reference/reference_backend.hpp"

namespace cyb::test {
namespace {

constexpr std::uint64_t kRegionBytes = std::uint64_t{64} << 30;
constexpr std::uint64_t kPage = 4096;

class FarRegion {
 public:
  FarRegion()
      : base_(static_cast<std::byte*>(::mmap(nullptr, kRegionBytes, PROT_NONE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
  }
  ~FarRegion() {
    if (valid()) ::munmap(base_, kRegionBytes);
  }
  FarRegion(const FarRegion&) = delete;
  FarRegion& operator=(const FarRegion&) = delete;
  bool valid() const { return base_ != MAP_FAILED; }

  /// Null if the region is full.
  std::byte* take(std::uint64_t size) {
    const std::scoped_lock lock(mutex_);
    std::uint64_t at = 0;
    for (const auto& [begin, length] : used_) {
      if (begin - at >= size) break;
      at = begin + length;
    }
    if (kRegionBytes - at < size) return nullptr;
    used_[at] = size;
    end_ = std::max(end_, at + size);
    return base_ + at;
  }
  void give(std::byte* data, std::uint64_t size) {
    const std::scoped_lock lock(mutex_);
    ::madvise(data, size, MADV_DONTNEED);  // zero when it is used again
    used_.erase(static_cast<std::uint64_t>(data - base_));
  }
  void protect(int how) {
    const std::scoped_lock lock(mutex_);
    if (end_ != 0) ::mprotect(base_, end_, how);
  }

 private:
  std::mutex mutex_;
  std::byte* base_;
  std::uint64_t end_ = 0;  // high-water mark
  std::map<std::uint64_t, std::uint64_t> used_;
};

class FarBlock final : public reference::DeviceBlock {
 public:
  FarBlock(std::shared_ptr<FarRegion> region, std::byte* data, std::uint64_t size)
      : region_(std::move(region)), data_(data), size_(size) {}
  ~FarBlock() override { region_->give(data_, size_); }
  FarBlock(const FarBlock&) = delete;
  FarBlock& operator=(const FarBlock&) = delete;
  std::byte* data() noexcept override { return data_; }

 private:
  std::shared_ptr<FarRegion> region_;
  std::byte* data_;
  std::uint64_t size_;
};

class FarMemory final : public reference::DeviceMemory {
 public:
  explicit FarMemory(std::shared_ptr<FarRegion> region)
      : region_(std::move(region)), worker_([this](const std::stop_token& stop) { serve(stop); }) {}

  Result<std::unique_ptr<reference::DeviceBlock>> allocate(std::uint64_t size_bytes,
                                                           std::string_view who) override {
    const std::uint64_t size = std::max(kPage, (size_bytes + kPage - 1) / kPage * kPage);
    std::byte* data = size_bytes <= kRegionBytes ? region_->take(size) : nullptr;
    if (data == nullptr) return fail(out_of_memory(who, size_bytes, kRegionBytes));
    return std::make_unique<FarBlock>(region_, data, size);
  }

  void execute(const std::function<void()>& work) override {
    const std::scoped_lock one_at_a_time(run_mutex_);
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [this] { return work_ == nullptr; });
  }

  bool host_visible() const noexcept override { return false; }

 private:
  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return work_ != nullptr; })) {
      region_->protect(PROT_READ | PROT_WRITE);
      (*work_)();
      region_->protect(PROT_NONE);
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::shared_ptr<FarRegion> region_;
  std::mutex run_mutex_, mutex_;
  std::condition_variable_any changed_;
  const std::function<void()>* work_ = nullptr;
  std::jthread worker_;  // last: it starts when the rest is there
};

}  // namespace

Result<std::shared_ptr<reference::DeviceMemory>> make_far_memory() {
  auto region = std::make_shared<FarRegion>();
  if (!region->valid()) {
    return fail(Error(ErrorKind::kBackendInit, "far: cannot start: no address space"));
  }
  return std::make_shared<FarMemory>(std::move(region));
}

Result<std::shared_ptr<Backend>> make_far_backend(const BackendOptions& options) {
  CYB_ASSIGN(auto memory, make_far_memory());
  return reference::make_backend("far", options, std::move(memory));
}

}  // namespace cyb::test
