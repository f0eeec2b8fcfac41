// BLAKE3-256: content identity of files, parts and tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cyb {

using Digest = std::array<std::uint8_t, 32>;

class Blake3 {
 public:
  Blake3();
  ~Blake3();
  Blake3(Blake3&&) noexcept;
  Blake3& operator=(Blake3&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  Digest finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest blake3(std::span<const std::byte> bytes);
Digest blake3(std::string_view text);

/// 64 lower-case hex digits.
std::string hex(const Digest& digest);
/// "blake3:" + hex.
std::string digest_text(const Digest& digest);
/// Parses 64 hex digits with or without the "blake3:" prefix.
std::optional<Digest> parse_digest(std::string_view text);

/// CRC-32C (Castagnoli), as the graph part's trailer uses it.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

}  // namespace cyb
