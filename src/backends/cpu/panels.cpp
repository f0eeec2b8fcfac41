// Byte layouts of panel blocks. A vector v of 64 bytes holds 4 k of 16 rows: byte 4 r + e belongs
// to row r, k mod 4 = e; group g is k / 4 inside a 32-block. Nibbles: vector g mod 4, low for g
// < 4. One-bit planes: bit g of the byte. Two-bit planes: vector g / 4, bits 2 (g mod 4).
//   q4    16 f16 d | 256 nibbles                          q4_1  16 f16 d | 16 f16 m | 256 nibbles
//   q5_0  16 f16 d | 256 nibbles | 64 bit plane           q5_1  16 f16 d | 16 f16 m | 256 nibbles |
//   64 bit plane q8    16 f16 d | 8 x 64 int8 q4k   16 f16 d | 16 f16 dmin | 8 x (16 u8 sc, 16 u8
//   mn) | 8 x 256 nibbles q5k   as q4k with 8 x (256 nibbles, 64 bit plane) q6k   16 f16 d | 16 x
//   16 int8 sc | 8 x (256 nibbles, 128 two-bit plane) q3k   16 f16 d | 16 x 16 int8 sc | 8 x (128
//   two-bit plane, 64 bit plane) q2k   16 f16 d | 16 f16 dmin | 16 x 16 (sc | mn << 4) | 8 x 128
//   two-bit plane f32, f16, bf16: [K][16]
#include "backends/cpu/panels.hpp"

#include <array>
#include <cstring>

namespace cyb::cpu {
namespace {

using Byte = std::uint8_t;

struct FormatRow {
  DType dtype;
  std::size_t values, bytes, source_bytes;
};
// In the order of PanelFormat.
constexpr std::array<FormatRow, kNumPanelFormats> kRows = {{
    {DType::kQ4, 32, 288, 18},
    {DType::kQ4_1, 32, 320, 20},
    {DType::kQ5_0, 32, 352, 22},
    {DType::kQ5_1, 32, 384, 24},
    {DType::kQ8, 32, 544, 34},
    {DType::kQ2k, 256, 1344, 84},
    {DType::kQ3k, 256, 1824, 110},
    {DType::kQ4k, 256, 2368, 144},
    {DType::kQ5k, 256, 2880, 176},
    {DType::kQ6k, 256, 3360, 210},
    {DType::kF32, 1, 64, 4},
    {DType::kF16, 1, 32, 2},
    {DType::kBf16, 1, 32, 2},
}};

void copy2(const Byte* from, Byte* to) {
  std::memcpy(to, from, 2);
}

/// 16 bytes of packed nibbles in the source's order (value j low, j + 16 high) are groups v | v + 4
/// as they stand.
void put_nibble_bytes(const Byte* nibbles, std::size_t r, Byte* vectors) {
  for (std::size_t v = 0; v < 4; ++v) std::memcpy(vectors + 64 * v + 4 * r, nibbles + 4 * v, 4);
}

void put_nibbles(const Byte* codes, std::size_t r, Byte* vectors) {
  for (std::size_t k = 0; k < 16; ++k) {
    vectors[64 * (k / 4) + 4 * r + k % 4] =
        static_cast<Byte>((codes[k] & 15) | ((codes[k + 16] & 15) << 4));
  }
}

/// Bit `bit` of each of 32 codes.
void put_bit_plane(const Byte* codes, int bit, std::size_t r, Byte* plane) {
  for (std::size_t e = 0; e < 4; ++e) {
    unsigned byte = 0;
    for (std::size_t g = 0; g < 8; ++g) byte |= ((codes[4 * g + e] >> bit) & 1u) << g;
    plane[4 * r + e] = static_cast<Byte>(byte);
  }
}

/// Bits `bit`, `bit` + 1 of each of 32 codes.
void put_two_bit_plane(const Byte* codes, int bit, std::size_t r, Byte* plane) {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t e = 0; e < 4; ++e) {
      unsigned byte = 0;
      for (std::size_t part = 0; part < 4; ++part) {
        byte |= ((codes[16 * half + 4 * part + e] >> bit) & 3u) << (2 * part);
      }
      plane[64 * half + 4 * r + e] = static_cast<Byte>(byte);
    }
  }
}

void five_bit_codes(const Byte* high, const Byte* nibbles, Byte* codes) {
  std::uint32_t bits;
  std::memcpy(&bits, high, 4);
  for (std::size_t j = 0; j < 16; ++j) {
    codes[j] = static_cast<Byte>((nibbles[j] & 15) | ((bits >> j) & 1u) << 4);
    codes[j + 16] = static_cast<Byte>((nibbles[j] >> 4) | ((bits >> (j + 16)) & 1u) << 4);
  }
}

void pack_q4(const Byte* s, std::size_t r, Byte* out) {
  copy2(s, out + 2 * r);
  put_nibble_bytes(s + 2, r, out + 32);
}
void pack_q4_1(const Byte* s, std::size_t r, Byte* out) {
  copy2(s, out + 2 * r);
  copy2(s + 2, out + 32 + 2 * r);
  put_nibble_bytes(s + 4, r, out + 64);
}
void pack_q5_0(const Byte* s, std::size_t r, Byte* out) {
  Byte codes[32];
  five_bit_codes(s + 2, s + 6, codes);
  copy2(s, out + 2 * r);
  put_nibble_bytes(s + 6, r, out + 32);
  put_bit_plane(codes, 4, r, out + 288);
}
void pack_q5_1(const Byte* s, std::size_t r, Byte* out) {
  Byte codes[32];
  five_bit_codes(s + 4, s + 8, codes);
  copy2(s, out + 2 * r);
  copy2(s + 2, out + 32 + 2 * r);
  put_nibble_bytes(s + 8, r, out + 64);
  put_bit_plane(codes, 4, r, out + 320);
}
void pack_q8(const Byte* s, std::size_t r, Byte* out) {
  copy2(s, out + 2 * r);
  for (std::size_t g = 0; g < 8; ++g) std::memcpy(out + 32 + 64 * g + 4 * r, s + 2 + 4 * g, 4);
}

/// The 6-bit scale and minimum of sub-block j of q4k and q5k.
void scale_and_minimum(const Byte* s, std::size_t j, Byte& scale, Byte& minimum) {
  if (j < 4) {
    scale = s[j] & 63;
    minimum = s[j + 4] & 63;
  } else {
    scale = static_cast<Byte>((s[j + 4] & 15) | ((s[j - 4] >> 6) << 4));
    minimum = static_cast<Byte>((s[j + 4] >> 4) | ((s[j] >> 6) << 4));
  }
}

void pack_q45k(const Byte* s, std::size_t r, bool five, Byte* out) {
  const Byte* high = s + 16;
  const Byte* q = five ? s + 48 : s + 16;
  copy2(s, out + 2 * r);
  copy2(s + 2, out + 32 + 2 * r);
  for (std::size_t j = 0; j < 8; ++j) {
    scale_and_minimum(s + 4, j, out[64 + 32 * j + r], out[64 + 32 * j + 16 + r]);
    Byte codes[32];
    for (std::size_t l = 0; l < 32; ++l) {
      codes[l] = static_cast<Byte>((q[j / 2 * 32 + l] >> (4 * (j % 2))) & 15);
      if (five) codes[l] = static_cast<Byte>(codes[l] | ((high[l] >> j) & 1) << 4);
    }
    Byte* block = out + 320 + (five ? 320 : 256) * j;
    put_nibbles(codes, r, block);
    if (five) put_bit_plane(codes, 4, r, block + 256);
  }
}
void pack_q4k(const Byte* s, std::size_t r, Byte* out) {
  pack_q45k(s, r, false, out);
}
void pack_q5k(const Byte* s, std::size_t r, Byte* out) {
  pack_q45k(s, r, true, out);
}

void pack_q6k(const Byte* s, std::size_t r, Byte* out) {
  copy2(s + 208, out + 2 * r);
  for (std::size_t k = 0; k < 16; ++k) out[32 + 16 * k + r] = s[192 + k];
  for (std::size_t j = 0; j < 8; ++j) {
    const std::size_t n = j / 4, g = j % 4;
    Byte codes[32];
    for (std::size_t l = 0; l < 32; ++l) {
      const unsigned low = (s[64 * n + 32 * (g % 2) + l] >> (4 * (g / 2))) & 15u;
      const unsigned high = (s[128 + 32 * n + l] >> (2 * g)) & 3u;
      codes[l] = static_cast<Byte>(low | high << 4);
    }
    put_nibbles(codes, r, out + 288 + 384 * j);
    put_two_bit_plane(codes, 4, r, out + 288 + 384 * j + 256);
  }
}

void pack_q3k(const Byte* s, std::size_t r, Byte* out) {
  const Byte* scales = s + 96;
  copy2(s + 108, out + 2 * r);
  for (std::size_t k = 0; k < 16; ++k) {
    const unsigned low = k < 8 ? scales[k] & 15u : static_cast<unsigned>(scales[k - 8] >> 4);
    const unsigned high = (scales[8 + k % 4] >> (2 * (k / 4))) & 3u;
    out[32 + 16 * k + r] = static_cast<Byte>(static_cast<int>(low | high << 4) - 32);
  }
  for (std::size_t j = 0; j < 8; ++j) {
    const std::size_t n = j / 4, g = j % 4;
    Byte codes[32];  // value + 4
    for (std::size_t l = 0; l < 32; ++l) {
      const unsigned low = (s[32 + 32 * n + l] >> (2 * g)) & 3u;
      codes[l] = static_cast<Byte>(low | ((s[l] >> j) & 1u) << 2);
    }
    put_two_bit_plane(codes, 0, r, out + 288 + 192 * j);
    put_bit_plane(codes, 2, r, out + 288 + 192 * j + 128);
  }
}

void pack_q2k(const Byte* s, std::size_t r, Byte* out) {
  copy2(s + 80, out + 2 * r);
  copy2(s + 82, out + 32 + 2 * r);
  for (std::size_t k = 0; k < 16; ++k) out[64 + 16 * k + r] = s[k];
  for (std::size_t j = 0; j < 8; ++j) {
    Byte codes[32];
    for (std::size_t l = 0; l < 32; ++l)
      codes[l] = static_cast<Byte>((s[16 + 32 * (j / 4) + l] >> (2 * (j % 4))) & 3);
    put_two_bit_plane(codes, 0, r, out + 320 + 128 * j);
  }
}

using PackBlock = void (*)(const Byte* source, std::size_t row, Byte* out);
constexpr std::array<PackBlock, kNumBlockFormats> kPack = {
    pack_q4,  pack_q4_1, pack_q5_0, pack_q5_1, pack_q8,
    pack_q2k, pack_q3k,  pack_q4k,  pack_q5k,  pack_q6k};

const FormatRow& row_of(PanelFormat format) {
  return kRows[static_cast<std::size_t>(format)];
}

}  // namespace

std::optional<PanelFormat> panel_format(DType dtype) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype == dtype) return static_cast<PanelFormat>(i);
  }
  return std::nullopt;
}

std::size_t panel_block_values(PanelFormat format) noexcept {
  return row_of(format).values;
}
std::size_t panel_block_bytes(PanelFormat format) noexcept {
  return row_of(format).bytes;
}

std::size_t panel_bytes(PanelFormat format, std::size_t n_in) noexcept {
  const FormatRow& row = row_of(format);
  const std::size_t blocks = is_block_format(format) ? n_in / row.values : (n_in + 3) / 4 * 4;
  return blocks * row.bytes;
}

void pack_panel(PanelFormat format, const std::byte* source, std::size_t n_out, std::size_t n_in,
                std::size_t panel, std::byte* out) noexcept {
  const FormatRow& row = row_of(format);
  const std::size_t blocks = n_in / row.values;
  const std::size_t first = panel * kPanelRows;
  const std::size_t rows = n_out - first < kPanelRows ? n_out - first : kPanelRows;
  if (rows != kPanelRows || !is_block_format(format))
    std::memset(out, 0, panel_bytes(format, n_in));
  for (std::size_t r = 0; r < rows; ++r) {
    const Byte* from =
        reinterpret_cast<const Byte*>(source) + (first + r) * blocks * row.source_bytes;
    Byte* to = reinterpret_cast<Byte*>(out);
    for (std::size_t b = 0; b < blocks; ++b, from += row.source_bytes, to += row.bytes) {
      if (is_block_format(format)) {
        kPack[static_cast<std::size_t>(format)](from, r, to);
      } else {
        std::memcpy(to + r * row.source_bytes, from, row.source_bytes);
      }
    }
  }
}

}  // namespace cyb::cpu
