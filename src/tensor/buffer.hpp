// Buffer: owning, aligned host memory. Move-only; never grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"

namespace cyb {

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  /// Zeroed memory, aligned to kAlignment (to a page from 1 MiB on). `who` names the owner in
  /// OutOfMemory. Errors: OutOfMemory{who}.
  static Result<Buffer> allocate(std::uint64_t size_bytes, std::string_view who = "host");
  /// Address space for bytes that nobody reads or writes, to measure with: from 1 MiB on it takes
  /// no memory and is never refused for want of it. Errors: OutOfMemory{who}.
  static Result<Buffer> reserve(std::uint64_t size_bytes, std::string_view who = "host");
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  /// Bytes [offset, offset + size) become zero; from a mapping their memory goes back to the system
  /// until they are touched again.
  void discard(std::size_t offset, std::size_t size) noexcept;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() noexcept { return {data_, size_}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  template <class T>
  T* as() noexcept {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Bytes that the system could still give this process, for OutOfMemory texts; 0 when unknown.
std::uint64_t available_memory_bytes() noexcept;

}  // namespace cyb
