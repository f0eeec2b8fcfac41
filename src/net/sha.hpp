// SHA-256 of files, and the id that git gives a file (SHA-1 of "blob <size>\0" and its bytes): what
// others announce. Our own identities are BLAKE3 (base/hash.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cyb::net {

class Sha {
 public:
  enum class Kind : std::uint8_t { kSha256, kGitBlob };
  /// `size`: of the file, for kGitBlob.
  explicit Sha(Kind kind, std::uint64_t size = 0);
  void update(std::span<const std::byte> bytes);
  /// Lower-case hex.
  std::string finish();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;
};

/// `n_digits` lower-case hex digits and nothing else.
bool is_hex(std::string_view text, std::size_t n_digits) noexcept;

}  // namespace cyb::net
