// Plain loops over 16 positions or 16 channels: the compiler makes vectors of them.
#include "backends/cpu/kv_codes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/half.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kBlock = 32, kSlots = 16;

/// One block of the format: scale, then codes; values past the head are 0.
struct Block {
  std::array<std::byte, 34> bytes;
  const std::byte* codes() const noexcept { return bytes.data() + 2; }
};

Block encode(DType dtype, const float* x, std::size_t n) noexcept {
  std::array<float, kBlock> values{};
  std::copy_n(x, std::min(n, kBlock), values.begin());
  Block out{};
  if (dtype == DType::kQ8) {
    formats::encode_q8(values, out.bytes.data());
  } else {
    formats::encode_q4(values, out.bytes.data());
  }
  return out;
}

float scale_at(const std::byte* at) noexcept {
  std::uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return f16_to_f32(half);
}

}  // namespace

void KvCodes::write_k(const float* k, std::size_t slot, std::byte* head) const noexcept {
  const std::size_t n_codes = codes(), n_blocks = blocks();
  std::byte* scales = head + n_blocks * n_codes * kSlots;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const Block block = encode(dtype, k + b * kBlock, head_dim - b * kBlock);
    std::byte* to = head + b * n_codes * kSlots + slot;
    for (std::size_t j = 0; j < n_codes; ++j) to[j * kSlots] = block.codes()[j];
    std::memcpy(scales + (b * kSlots + slot) * 2, block.bytes.data(), 2);
  }
}

void KvCodes::write_v(const float* v, std::size_t slot, std::byte* head) const noexcept {
  const std::size_t n_codes = codes(), n_blocks = blocks();
  std::byte* scales = head + n_blocks * n_codes * kSlots;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const Block block = encode(dtype, v + b * kBlock, head_dim - b * kBlock);
    std::memcpy(head + (slot * n_blocks + b) * n_codes, block.codes(), n_codes);
    std::memcpy(scales + (slot * n_blocks + b) * 2, block.bytes.data(), 2);
  }
}

void KvCodes::read_k(const std::byte* head, float* to) const noexcept {
  const std::size_t n_codes = codes(), n_blocks = blocks();
  const std::byte* scales = head + n_blocks * n_codes * kSlots;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    float d[kSlots];
    for (std::size_t s = 0; s < kSlots; ++s) d[s] = scale_at(scales + (b * kSlots + s) * 2);
    const auto* from = reinterpret_cast<const std::int8_t*>(head + b * n_codes * kSlots);
    const std::size_t left = head_dim - b * kBlock;
    float* out = to + b * kBlock * kSlots;
    if (dtype == DType::kQ8) {
      for (std::size_t j = 0; j < std::min(left, kBlock); ++j) {
        for (std::size_t s = 0; s < kSlots; ++s)
          out[j * kSlots + s] = d[s] * static_cast<float>(from[j * kSlots + s]);
      }
      continue;
    }
    for (std::size_t j = 0; j < std::min(left, kSlots); ++j) {
      for (std::size_t s = 0; s < kSlots; ++s)
        out[j * kSlots + s] = d[s] * static_cast<float>((from[j * kSlots + s] & 15) - 8);
    }
    for (std::size_t j = 0; j + kSlots < std::min(left, kBlock); ++j) {
      for (std::size_t s = 0; s < kSlots; ++s)
        out[(j + 16) * kSlots + s] =
            d[s] * static_cast<float>((from[j * kSlots + s] >> 4 & 15) - 8);
    }
  }
}

void KvCodes::read_v(const std::byte* head, std::size_t padded, float* to) const noexcept {
  const std::size_t n_codes = codes(), n_blocks = blocks();
  const std::byte* scales = head + n_blocks * n_codes * kSlots;
  for (std::size_t i = 0; i < kSlots * n_blocks; ++i) {
    const float d = scale_at(scales + i * 2);
    const auto* from = reinterpret_cast<const std::int8_t*>(head + i * n_codes);
    const std::size_t first = i % n_blocks * kBlock;
    float* out = to + i / n_blocks * padded + first;
    const std::size_t left = std::min(padded - first, kBlock);  // 16 or 32
    if (dtype == DType::kQ8) {
      for (std::size_t j = 0; j < left; ++j) out[j] = d * static_cast<float>(from[j]);
      continue;
    }
    for (std::size_t j = 0; j < 16; ++j) out[j] = d * static_cast<float>((from[j] & 15) - 8);
    for (std::size_t j = 0; j + 16 < left; ++j)
      out[j + 16] = d * static_cast<float>((from[j] >> 4 & 15) - 8);
  }
}

}  // namespace cyb::cpu
