// Context: memory, limits and the current place of one compilation or rendering. Failures travel as
// a C++ exception inside this folder only; Template::compile and Template::render turn them into
// Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cyb::tmpl {

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

/// Thrown by everything in this folder that cannot go on.
struct Failure {
  Position at;
  std::string message;
};

/// Memory of strings, lists and other values of one rendering; all of it goes at the end, nothing
/// before.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// nullptr when the budget is used up. Aligned for any scalar.
  void* take(std::size_t size) noexcept {
    size = size == 0 ? 8 : (size + 7) & ~std::size_t{7};
    if (size > room_ && !grow(size)) return nullptr;
    void* out = next_;
    next_ += size;
    room_ -= size;
    return out;
  }

 private:
  static constexpr std::size_t kBudget = std::size_t{256} << 20;
  static constexpr std::size_t kChunk = std::size_t{64} << 10;

  bool grow(std::size_t size) noexcept {
    const std::size_t chunk = size > kChunk ? size : kChunk;
    if (chunk > kBudget - used_) return false;
    std::byte* memory = new (std::nothrow) std::byte[chunk];
    if (memory == nullptr) return false;
    chunks_.emplace_back(memory);
    used_ += chunk;
    next_ = memory;
    room_ = chunk;
    return true;
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t room_ = 0, used_ = 0;
};

class Context {
 public:
  Position here;  // of the construct at work, for messages

  [[noreturn]] void fail(std::string message) const { throw Failure{here, std::move(message)}; }

  /// Uninitialised memory for `count` values; T needs no destructor.
  template <class T>
  T* array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 8);
    void* memory = arena_.take(count * sizeof(T));
    if (memory == nullptr) fail("the template uses too much memory");
    return static_cast<T*>(memory);
  }

  template <class T>
  T* make(const T& value) {
    return new (array<T>(1)) T(value);
  }

  /// Counts `cost` steps of work; fails above the limit.
  void step(std::uint64_t cost = 1);

 private:
  Arena arena_;
  std::uint64_t steps_ = 0;
};

}  // namespace cyb::tmpl
