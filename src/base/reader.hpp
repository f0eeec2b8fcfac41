// BoundedReader: the one way bytes of a file are read. Little-endian; every read is checked against
// what remains, and no count read from the input is trusted before it is compared with remaining().
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/checked.hpp"
#include "base/result.hpp"

namespace cyb {

static_assert(std::endian::native == std::endian::little,
              "readers and kernels assume little-endian");

class BoundedReader {
 public:
  explicit BoundedReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t remaining() const noexcept { return bytes_.size() - position_; }

  /// A fixed-size number (integer, float).
  template <class T>
    requires std::is_arithmetic_v<T>
  Result<T> read() {
    CYB_ASSIGN(const std::span<const std::byte> raw, take(sizeof(T)));
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  /// The next `size` bytes, as a view into the input.
  Result<std::span<const std::byte>> take(std::uint64_t size) {
    if (size > remaining()) return fail(truncated(size));
    const auto out =
        bytes_.subspan(static_cast<std::size_t>(position_), static_cast<std::size_t>(size));
    position_ += size;
    return out;
  }

  Result<std::string_view> take_text(std::uint64_t size) {
    CYB_ASSIGN(const std::span<const std::byte> raw, take(size));
    return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
  }

  Result<void> seek(std::uint64_t position) {
    if (position > bytes_.size()) return fail(truncated(position - position_));
    position_ = position;
    return {};
  }

  /// True if `count` items of at least `min_item_size` bytes can still follow: ask before reserving
  /// memory.
  bool can_hold(std::uint64_t count, std::uint64_t min_item_size) const noexcept {
    const auto need = checked_mul(count, min_item_size);
    return need && *need <= remaining();
  }

 private:
  Error truncated(std::uint64_t need) const {
    return Error(ErrorKind::kFormat, "F11",
                 "truncated: byte " + std::to_string(position_) + " needs " + std::to_string(need) +
                     " more bytes, " + std::to_string(remaining()) + " remain");
  }

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace cyb
