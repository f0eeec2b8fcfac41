// Encoders of block formats that search: of all scales (and minima) they take those with the least
// weighted squared error, sum of w*(x - decoded)^2. They are pure functions of their blocks: equal
// input, equal bytes, on every machine and with any number of threads.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.hpp"

namespace cyb::formats {

/// Encodes `n` values (whole blocks) from `src` into `dst`. `weights`: one a value, >= 0, or null
/// for equal ones. A value that is not finite counts as 0 (files refuse them, F42).
using FineEncodeFn = void (*)(const float* src, const float* weights, std::byte* dst,
                              std::size_t n) noexcept;

void encode_fine_q4(const float* src, const float* weights, std::byte* dst, std::size_t n) noexcept;
void encode_fine_q4_1(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept;
void encode_fine_q5_0(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept;
void encode_fine_q5_1(const float* src, const float* weights, std::byte* dst,
                      std::size_t n) noexcept;
void encode_fine_q8(const float* src, const float* weights, std::byte* dst, std::size_t n) noexcept;
void encode_fine_q2k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept;
void encode_fine_q3k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept;
void encode_fine_q4k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept;
void encode_fine_q5k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept;
void encode_fine_q6k(const float* src, const float* weights, std::byte* dst,
                     std::size_t n) noexcept;

/// The encoder of a format, null where there is none.
FineEncodeFn fine_encoder(DType dtype) noexcept;

}  // namespace cyb::formats
