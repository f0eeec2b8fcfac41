// The float contract of the cpu backend's int8 dot products as plain scalar code, straight from
// source blocks: what every ISA, tile and thread count must equal bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/half.hpp"
#include "tensor/dtype.hpp"

namespace cyb::contract {

/// One 32-block of activations.
struct Act {
  float dx = 0, sx = 0;
  int q[32] = {};
};

inline Act quantize(const float* x) {
  Act a;
  float most = 0;
  for (int i = 0; i < 32; ++i) {
    if (!std::isfinite(x[i])) {
      a.dx = a.sx = std::numeric_limits<float>::quiet_NaN();
      return a;
    }
    most = std::max(most, std::fabs(x[i]));
  }
  if (most < 4e-37f) return a;
  const float inverse = 127.0f / most;
  int sum = 0;
  for (int i = 0; i < 32; ++i) {
    a.q[i] = static_cast<int>(std::nearbyintf(x[i] * inverse));
    sum += a.q[i];
  }
  a.dx = most * (1.0f / 127.0f);
  a.sx = a.dx * static_cast<float>(sum);
  return a;
}

inline float half_at(const std::uint8_t* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
  return f16_to_f32(h);
}

/// A source block taken apart: codes as the contract multiplies them, scales and minima per 16
/// values.
struct Codes {
  float d = 0, m = 0;  // m: minimum (32-blocks) or dmin
  int w[256] = {};
  int sc[16] = {}, mn[16] = {};
};

inline Codes codes_32(DType type, const std::uint8_t* s) {
  Codes c;
  c.d = half_at(s);
  if (type == DType::kQ8) {
    for (int i = 0; i < 32; ++i) c.w[i] = static_cast<std::int8_t>(s[2 + i]);
    return c;
  }
  const bool affine = type == DType::kQ4_1 || type == DType::kQ5_1;
  const bool five = type == DType::kQ5_0 || type == DType::kQ5_1;
  const std::uint8_t* p = s + 2;
  if (affine) {
    c.m = half_at(p);
    p += 2;
  }
  std::uint32_t high = 0;
  if (five) {
    std::memcpy(&high, p, 4);
    p += 4;
  }
  const int offset = affine ? 0 : five ? 16 : 8;
  for (int j = 0; j < 32; ++j) {
    const int nibble = j < 16 ? p[j] & 15 : p[j - 16] >> 4;
    c.w[j] = (nibble | static_cast<int>((high >> j) & 1u) << 4) - offset;
  }
  return c;
}

inline Codes codes_45k(DType type, const std::uint8_t* s) {
  Codes c;
  const bool five = type == DType::kQ5k;
  c.d = half_at(s);
  c.m = half_at(s + 2);
  const std::uint8_t* sc = s + 4;
  const std::uint8_t* q = s + (five ? 48 : 16);
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? sc[j] & 63 : (sc[j + 4] & 15) | (sc[j - 4] >> 6) << 4;
    const int minimum = j < 4 ? sc[j + 4] & 63 : sc[j + 4] >> 4 | (sc[j] >> 6) << 4;
    c.sc[2 * j] = c.sc[2 * j + 1] = scale;
    c.mn[2 * j] = c.mn[2 * j + 1] = minimum;
    for (int l = 0; l < 32; ++l) {
      int n = (q[j / 2 * 32 + l] >> (4 * (j % 2))) & 15;
      if (five) n |= ((s[16 + l] >> j) & 1) << 4;
      c.w[32 * j + l] = n;
    }
  }
  return c;
}

inline Codes codes_k(DType type, const std::uint8_t* s) {
  if (type == DType::kQ4k || type == DType::kQ5k) return codes_45k(type, s);
  Codes c;
  for (int i = 0; i < 256; ++i) {
    const int n = i / 128, g = i % 128 / 32, l = i % 32, k = i / 16;
    if (type == DType::kQ6k) {
      const int low = (s[64 * n + 32 * (g % 2) + l] >> (4 * (g / 2))) & 15;
      c.w[i] = (low | ((s[128 + 32 * n + l] >> (2 * g)) & 3) << 4) - 32;
      c.sc[k] = static_cast<std::int8_t>(s[192 + k]);
    } else if (type == DType::kQ2k) {
      c.w[i] = (s[16 + 32 * n + l] >> (2 * g)) & 3;
      c.sc[k] = s[k] & 15;
      c.mn[k] = s[k] >> 4;
    } else {
      c.w[i] = ((s[32 + 32 * n + l] >> (2 * g)) & 3) - (((s[l] >> (4 * n + g)) & 1) != 0 ? 0 : 4);
      const std::uint8_t* q = s + 96;
      const int low = k < 8 ? q[k] & 15 : q[k - 8] >> 4;
      c.sc[k] = (low | ((q[8 + k % 4] >> (2 * (k / 4))) & 3) << 4) - 32;
    }
  }
  c.d = half_at(s + (type == DType::kQ6k ? 208 : type == DType::kQ2k ? 80 : 108));
  if (type == DType::kQ2k) c.m = half_at(s + 82);
  return c;
}

inline int integer_dot(const int* w, const int* q, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += w[i] * q[i];
  return sum;
}

/// One output: a row of blocks against K / 32 activation blocks.
inline float row_dot(DType type, const std::uint8_t* row, const std::vector<Act>& x) {
  const FormatInfo& info = format_info(type);
  float acc = 0;
  if (info.block_values == 32) {
    for (const Act& a : x) {
      const Codes c = codes_32(type, row);
      if (type == DType::kQ4_1 || type == DType::kQ5_1) acc = std::fmaf(c.m, a.sx, acc);
      acc = std::fmaf(static_cast<float>(integer_dot(c.w, a.q, 32)) * a.dx, c.d, acc);
      row += info.block_bytes;
    }
    return acc;
  }
  for (std::size_t b = 0; b < x.size(); b += 8, row += info.block_bytes) {
    const Codes c = codes_k(type, row);
    float s = 0, t = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      const Act& a = x[b + j];
      const int* w = c.w + 32 * j;
      const int i0 = integer_dot(w, a.q, 16), i1 = integer_dot(w + 16, a.q + 16, 16);
      s = std::fmaf(static_cast<float>(i0 * c.sc[2 * j] + i1 * c.sc[2 * j + 1]), a.dx, s);
      if (type == DType::kQ2k) {
        int s0 = 0, s1 = 0;
        for (int i = 0; i < 16; ++i) {
          s0 += a.q[i];
          s1 += a.q[16 + i];
        }
        t = std::fmaf(static_cast<float>(c.mn[2 * j] * s0 + c.mn[2 * j + 1] * s1), a.dx, t);
      } else {
        t = std::fmaf(static_cast<float>(c.mn[2 * j]), a.sx, t);
      }
    }
    if (type == DType::kQ2k || type == DType::kQ4k || type == DType::kQ5k)
      acc = std::fmaf(-c.m, t, acc);
    acc = std::fmaf(c.d, s, acc);
  }
  return acc;
}

/// Offsets of the half-precision scales inside a source block.
inline std::vector<std::size_t> scale_offsets(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4k:
    case DType::kQ5k:
      return {0, 2};
    case DType::kQ2k:
      return {80, 82};
    case DType::kQ3k:
      return {108};
    case DType::kQ6k:
      return {208};
    default:
      return {0};
  }
}

/// Random rows of blocks with scales of a sensible size; `extreme`: all bits of the quants set,
/// cleared or 0x7F / 0x80.
inline std::vector<std::byte> random_rows(DType type, std::size_t n_rows, std::size_t n_in,
                                          std::mt19937& rng, bool extreme = false) {
  const FormatInfo& info = format_info(type);
  const std::size_t blocks = n_rows * (n_in / info.block_values);
  std::vector<std::byte> out(blocks * info.block_bytes);
  std::uniform_real_distribution<float> scale(0.001f, 0.01f);
  const unsigned fills[] = {0xFF, 0x00, 0x7F, 0x80};
  for (std::size_t b = 0; b < blocks; ++b) {
    std::byte* block = out.data() + b * info.block_bytes;
    const unsigned fill = fills[rng() % 4];
    for (std::size_t i = 0; i < info.block_bytes; ++i)
      block[i] = static_cast<std::byte>(extreme ? fill : rng() & 255u);
    for (const std::size_t at : scale_offsets(type)) {
      const float s = scale(rng) * (rng() % 2 == 0 ? 1.0f : -1.0f) * (extreme ? 100.0f : 1.0f);
      const std::uint16_t h = f32_to_f16(s);
      std::memcpy(block + at, &h, 2);
    }
  }
  return out;
}

}  // namespace cyb::contract
