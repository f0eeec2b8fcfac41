// A float is not finite exactly when all its exponent bits are set. Plain elements are tested in
// strips that the compiler vectorises; a strip with a hit is searched for the first one.
#include "model/finite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "model/format_error.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb {
namespace {

constexpr std::size_t kStrip = 1024;

/// Index of the first element of `bytes` with all bits of `mask` set, or -1.
template <class T>
std::ptrdiff_t first_with_mask(std::span<const std::byte> bytes, T mask) noexcept {
  const std::size_t n = bytes.size() / sizeof(T);
  std::array<T, kStrip> strip;
  for (std::size_t begin = 0; begin < n; begin += kStrip) {
    const std::size_t count = std::min(kStrip, n - begin);
    std::memcpy(strip.data(), bytes.data() + begin * sizeof(T), count * sizeof(T));
    unsigned bad = 0;
    for (std::size_t i = 0; i < count; ++i) bad |= static_cast<unsigned>((strip[i] & mask) == mask);
    if (bad == 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      if ((strip[i] & mask) == mask) return static_cast<std::ptrdiff_t>(begin + i);
    }
  }
  return -1;
}

struct ScalePlaces {
  DType dtype;
  int first, second;  // byte offsets of the f16 scales in a block, -1: none
};
constexpr std::array kScales = {
    ScalePlaces{DType::kQ8, 0, -1},     ScalePlaces{DType::kQ4, 0, -1},
    ScalePlaces{DType::kQ4_1, 0, 2},    ScalePlaces{DType::kQ5_0, 0, -1},
    ScalePlaces{DType::kQ5_1, 0, 2},    ScalePlaces{DType::kQ2k, 80, 82},
    ScalePlaces{DType::kQ3k, 108, -1},  ScalePlaces{DType::kQ4k, 0, 2},
    ScalePlaces{DType::kQ5k, 0, 2},     ScalePlaces{DType::kQ6k, 208, -1},
    ScalePlaces{DType::kIq4nl, 0, -1},  ScalePlaces{DType::kIq4xs, 0, -1},
    ScalePlaces{DType::kIq3xxs, 0, -1}, ScalePlaces{DType::kIq3s, 0, -1},
    ScalePlaces{DType::kIq2xxs, 0, -1}, ScalePlaces{DType::kIq2xs, 0, -1},
    ScalePlaces{DType::kIq2s, 0, -1},   ScalePlaces{DType::kIq1s, 0, -1},
    ScalePlaces{DType::kTq1_0, 52, -1}, ScalePlaces{DType::kTq2_0, 64, -1},
};

bool half_is_finite(const std::byte* at) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return (bits & 0x7C00u) != 0x7C00u;
}

/// Index of the first block with a scale that is not finite, or -1.
std::ptrdiff_t first_bad_scale(std::span<const std::byte> bytes, std::size_t block_bytes,
                               const ScalePlaces& places) noexcept {
  for (std::size_t at = 0; at + block_bytes <= bytes.size(); at += block_bytes) {
    const std::byte* block = bytes.data() + at;
    const bool ok = half_is_finite(block + places.first) &&
                    (places.second < 0 || half_is_finite(block + places.second));
    if (!ok) return static_cast<std::ptrdiff_t>(at / block_bytes);
  }
  return -1;
}

/// The same where only the values tell: by decoding each block.
std::ptrdiff_t first_bad_value(const FormatInfo& format, std::span<const std::byte> bytes) {
  std::array<float, 256> values{};
  const std::size_t n = format.block_values;
  for (std::size_t at = 0; at + format.block_bytes <= bytes.size(); at += format.block_bytes) {
    format.decode(bytes.data() + at, values.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      if (!std::isfinite(values[i])) return static_cast<std::ptrdiff_t>(at / format.block_bytes);
    }
  }
  return -1;
}

std::ptrdiff_t first_non_finite(DType dtype, std::size_t block_bytes,
                                std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kF32:
      return first_with_mask<std::uint32_t>(bytes, 0x7F800000u);
    case DType::kF16:
      return first_with_mask<std::uint16_t>(bytes, 0x7C00u);
    case DType::kBf16:
      return first_with_mask<std::uint16_t>(bytes, 0x7F80u);
    case DType::kF64:
      return first_with_mask<std::uint64_t>(bytes, 0x7FF0000000000000u);
    case DType::kFp8e4m3:
      return first_with_mask<std::uint8_t>(bytes, 0x7Fu);
    case DType::kFp8e5m2:
      return first_with_mask<std::uint8_t>(bytes, 0x7Cu);
    case DType::kIq1m:   // its scale is spread over four words
    case DType::kMxfp4:  // a power of two that may be too large for its values
      return first_bad_value(format_info(dtype), bytes);
    default:
      break;
  }
  const auto row = std::ranges::find(kScales, dtype, &ScalePlaces::dtype);
  return row == kScales.end() ? -1 : first_bad_scale(bytes, block_bytes, *row);
}

}  // namespace

FiniteCheck::FiniteCheck(std::string tensor, DType dtype)
    : tensor_(std::move(tensor)), dtype_(dtype), block_bytes_(format_info(dtype).block_bytes) {}

Error FiniteCheck::non_finite_at(std::uint64_t block) const {
  const std::uint64_t element = block * format_info(dtype_).block_values;
  return format_error("F42", fmt::format("tensor \"{}\": non-finite value at element {}",
                                         printable(tensor_), element));
}

Result<void> FiniteCheck::blocks(std::span<const std::byte> bytes) {
  if (dtype_ == DType::kTernary) {
    const std::ptrdiff_t bad = formats::ternary_find_invalid(bytes);
    if (bad >= 0) {
      return fail(format_error(
          "F30", fmt::format("tensor \"{}\": invalid ternary code at byte {}", printable(tensor_),
                             blocks_done_ + static_cast<std::uint64_t>(bad))));
    }
  }
  const std::ptrdiff_t bad = first_non_finite(dtype_, block_bytes_, bytes);
  if (bad >= 0) return fail(non_finite_at(blocks_done_ + static_cast<std::uint64_t>(bad)));
  blocks_done_ += bytes.size() / block_bytes_;
  return {};
}

Result<void> FiniteCheck::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  if (carry_size_ > 0) {
    const std::size_t take = std::min(block_bytes_ - carry_size_, bytes.size());
    std::memcpy(carry_ + carry_size_, bytes.data(), take);
    carry_size_ += take;
    bytes = bytes.subspan(take);
    if (carry_size_ < block_bytes_) return {};
    carry_size_ = 0;
    CYB_TRY(blocks(std::span(carry_, block_bytes_)));
  }
  const std::size_t whole = bytes.size() / block_bytes_ * block_bytes_;
  CYB_TRY(blocks(bytes.first(whole)));
  carry_size_ = bytes.size() - whole;
  if (carry_size_ > 0) std::memcpy(carry_, bytes.data() + whole, carry_size_);
  return {};
}

}  // namespace cyb
