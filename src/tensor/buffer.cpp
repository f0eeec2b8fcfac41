// Buffer on anonymous mappings: large ones cost nothing until touched and go back to the system
// when freed.
#include "tensor/buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace cyb {
namespace {

constexpr std::uint64_t kMapFrom = std::uint64_t{1} << 20;

}  // namespace

Result<Buffer> Buffer::reserve(std::uint64_t size_bytes, std::string_view who) {
  if (size_bytes < kMapFrom) return allocate(size_bytes, who);
  void* address = size_bytes > PTRDIFF_MAX
                      ? MAP_FAILED
                      : ::mmap(nullptr, size_bytes, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return fail(out_of_memory(who, size_bytes, available_memory_bytes()));
  Buffer buffer;
  buffer.data_ = static_cast<std::byte*>(address);
  buffer.size_ = static_cast<std::size_t>(size_bytes);
  return buffer;
}

Result<Buffer> Buffer::allocate(std::uint64_t size_bytes, std::string_view who) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  if (size_bytes >= kMapFrom) {
    void* address = size_bytes > PTRDIFF_MAX ? MAP_FAILED
                                             : ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
      return fail(out_of_memory(who, size_bytes, available_memory_bytes()));
    }
    buffer.data_ = static_cast<std::byte*>(address);
  } else {
    const std::size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
    buffer.data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (buffer.data_ == nullptr) {
      return fail(out_of_memory(who, size_bytes, available_memory_bytes()));
    }
    std::memset(buffer.data_, 0, rounded);
  }
  buffer.size_ = static_cast<std::size_t>(size_bytes);
  return buffer;
}

void Buffer::discard(std::size_t offset, std::size_t size) noexcept {
  if (offset >= size_) return;
  std::byte* const end = data_ + offset + std::min(size, size_ - offset);
  std::byte* begin = data_ + offset;
  if (size_ >= kMapFrom) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
    const auto last = reinterpret_cast<std::uintptr_t>(end) / page * page;
    auto* const from = reinterpret_cast<std::byte*>(first);
    if (first < last && ::madvise(from, last - first, MADV_DONTNEED) == 0) {
      std::memset(begin, 0, static_cast<std::size_t>(from - begin));
      begin = reinterpret_cast<std::byte*>(last);
    }
  }
  std::memset(begin, 0, static_cast<std::size_t>(end - begin));
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  if (size_ >= kMapFrom) {
    ::munmap(data_, size_);
  } else {
    std::free(data_);
  }
}

std::uint64_t available_memory_bytes() noexcept {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages < 0 || page < 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

}  // namespace cyb
