// Decoders and encoders of weight formats; one .cpp per format. Each decodes whole blocks, in f32,
// in the written order of spec model-format 6.1, so that every backend can be checked against equal
// bits. (bytes.hpp has what they share.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cyb::formats {

// Decoders, DecodeFn of tensor/dtype.hpp: `n` values from whole blocks at `src` into `dst`.
void decode_f32(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_f16(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_bf16(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q8(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q4(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q4_1(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q5_0(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q5_1(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q2k(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q3k(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q4k(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q5k(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_q6k(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq4nl(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq4xs(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq3xxs(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq3s(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq2xxs(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq2xs(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq2s(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq1s(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_iq1m(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_tq1_0(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_tq2_0(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_mxfp4(const std::byte* src, float* dst, std::size_t n) noexcept;
/// Without the scale, which is a sibling tensor; NaN and infinities stay what they are.
void decode_fp8e4m3(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_fp8e5m2(const std::byte* src, float* dst, std::size_t n) noexcept;
/// Codes only (-1, 0, +1), to be multiplied by the sibling scale; code 11 decodes as 0: see
/// ternary_find_invalid.
void decode_ternary(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_i32q16(const std::byte* src, float* dst, std::size_t n) noexcept;
void decode_i16q8(const std::byte* src, float* dst, std::size_t n) noexcept;

/// Offset of the first byte that holds the invalid code 11 (F30), or -1.
std::ptrdiff_t ternary_find_invalid(std::span<const std::byte> bytes) noexcept;

// Encoders, spec model-format 6.2. `dst` has tensor_bytes of the format for src.size() values
// (whole blocks).
/// Round to nearest even. Returns the index of the first value with |x| > 65504 (an error for
/// files), or -1.
std::ptrdiff_t encode_f16(std::span<const float> src, std::byte* dst) noexcept;
void encode_bf16(std::span<const float> src, std::byte* dst) noexcept;
void encode_q8(std::span<const float> src, std::byte* dst) noexcept;
void encode_q4(std::span<const float> src, std::byte* dst) noexcept;
/// One scale for all of `src`: mean |x|; returns it. Codes are packed four a byte.
float encode_ternary(std::span<const float> src, std::byte* dst) noexcept;
/// Round half to even. Returns the index of the first value out of range or not finite, or -1.
std::ptrdiff_t encode_i32q16(std::span<const float> src, std::byte* dst) noexcept;
std::ptrdiff_t encode_i16q8(std::span<const float> src, std::byte* dst) noexcept;

}  // namespace cyb::formats
