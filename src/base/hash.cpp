// BLAKE3 through the C library; CRC-32C by a table made at compile time.
#include "base/hash.hpp"

#include <blake3.h>

#include <utility>

namespace cyb {

struct Blake3::State {
  blake3_hasher hasher;
};

Blake3::Blake3() : state_(std::make_unique<State>()) {
  blake3_hasher_init(&state_->hasher);
}
Blake3::~Blake3() = default;
Blake3::Blake3(Blake3&&) noexcept = default;
Blake3& Blake3::operator=(Blake3&&) noexcept = default;

void Blake3::update(std::span<const std::byte> bytes) {
  blake3_hasher_update(&state_->hasher, bytes.data(), bytes.size());
}

void Blake3::update(std::string_view text) {
  blake3_hasher_update(&state_->hasher, text.data(), text.size());
}

Digest Blake3::finish() const {
  Digest digest;
  blake3_hasher_finalize(&state_->hasher, digest.data(), digest.size());
  return digest;
}

Digest blake3(std::span<const std::byte> bytes) {
  Blake3 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Digest blake3(std::string_view text) {
  return blake3(std::as_bytes(std::span(text.data(), text.size())));
}

std::string hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string digest_text(const Digest& digest) {
  return "blake3:" + hex(digest);
}

namespace {

/// Value of a lower-case hex digit, or -1. Text forms of digests are lower-case only.
int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}

constexpr auto kCrcTable = make_crc_table();

}  // namespace

std::optional<Digest> parse_digest(std::string_view text) {
  constexpr std::string_view kPrefix = "blake3:";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  Digest digest;
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFu];
  }
  return ~crc;
}

}  // namespace cyb
