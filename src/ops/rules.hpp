// Pieces of shape and dtype rules, with the error texts of G04, G05, G09 and G10 (tails: the caller
// knows the node). A comparison that symbols leave open passes here and is checked again at run
// time.
#pragma once

#include <string_view>

#include "ops/op.hpp"

namespace cyb::rules {

Error bad_payload(std::string_view field);
Error bad_count(std::size_t got, std::string_view needs);
Error bad_dtype(std::size_t input, DType dtype);
Error bad_shape(std::string_view got, std::string_view expected);

using Specs = std::span<const TensorSpec>;

/// Input k, or TensorSpec::none() past the end.
const TensorSpec& at(Specs inputs, std::size_t k) noexcept;

/// f32 or f16: a value that ops compute on (bf16 is for weights only, f64 for Cast and layout).
bool is_float(DType dtype) noexcept;
bool is_int(DType dtype) noexcept;
/// A float, block or fixed dtype that can be decoded to f32.
bool is_weight(DType dtype) noexcept;

/// f16, f32 or f64: what elementwise functions compute on.
bool is_real(DType dtype) noexcept;
/// A real or an integer.
bool is_number(DType dtype) noexcept;
/// A number or bool: what layout ops, Where and comparisons take.
bool is_element(DType dtype) noexcept;

Result<void> want_float(Specs inputs, std::size_t k);
Result<void> want_real(Specs inputs, std::size_t k);
Result<void> want_number(Specs inputs, std::size_t k);
Result<void> want_int(Specs inputs, std::size_t k);
/// i32 or i64.
Result<void> want_index(Specs inputs, std::size_t k);
/// An i32 or i64 tensor of rank 0 or 1: a parameter that is a tensor.
Result<void> want_list(Specs inputs, std::size_t k);
/// Inputs [first, end) that are given have the dtype of input 0.
Result<void> want_same_dtype(Specs inputs, std::size_t first = 1);
/// G04 unless the attribute is at most `largest`.
Result<void> want_at_most(const Attrs& attrs, std::size_t k, std::int64_t largest,
                          std::string_view field);
Result<void> want_dtype(Specs inputs, std::size_t k, DType dtype);
/// Input k has the dtype of input 0, or f32 (gains and biases of f16 graphs).
Result<void> want_parameter(Specs inputs, std::size_t k);
Result<void> want_weight(Specs inputs, std::size_t k);
Result<void> want_rank(Specs inputs, std::size_t k, std::size_t rank);
Result<void> want_min_rank(Specs inputs, std::size_t k, std::size_t rank);
/// Rank and every dimension of input k.
Result<void> want_dims(Specs inputs, std::size_t k, std::span<const Dim> dims);
/// A dimension that is summed over is not the constant 0.
Result<void> want_nonempty(const TensorSpec& spec, std::size_t axis);

/// Every dtype but blocks: what layout ops move.
Result<void> want_elements(Specs inputs, std::size_t k);

/// The more definite of two dimensions that must be equal; nullopt if they certainly differ.
std::optional<Dim> merge(const Dim& a, const Dim& b);
/// NumPy broadcasting; G10 if impossible.
Result<std::vector<Dim>> broadcast(const TensorSpec& a, const TensorSpec& b);
/// Axis in 0..rank-1 from a possibly negative one; G04 (field) otherwise.
Result<std::size_t> axis(std::int64_t axis, std::size_t rank, std::string_view field);
/// Dimensions of `spec` with the last replaced.
std::vector<Dim> with_last(const TensorSpec& spec, Dim last);

inline Result<std::vector<TensorSpec>> one(DType dtype, std::vector<Dim> dims) {
  std::vector<TensorSpec> out;
  out.push_back({dtype, std::move(dims)});
  return out;
}

/// Most elements of a tensor whose value is followed at load.
inline constexpr std::int64_t kMaxValues = 256;

/// Elements of input k where they are known as dimensions; null otherwise.
const std::vector<Dim>* value_of(Specs inputs, std::size_t k) noexcept;
/// Elements of input k where all are constants.
std::optional<std::vector<std::int64_t>> constants_of(Specs inputs, std::size_t k);
/// Number of elements of a list input where it is known.
std::optional<std::int64_t> length_of(Specs inputs, std::size_t k) noexcept;
/// Product of dimensions; anonymous where it has two symbolic factors.
Dim product(std::span<const Dim> dims);

/// Shape rule of elementwise real ops of one input: output like the input.
Result<std::vector<TensorSpec>> same_real(const Attrs& attrs, Specs inputs);
Result<std::vector<TensorSpec>> same_number(const Attrs& attrs, Specs inputs);

/// Shape rule of elementwise float ops of one input: output like the input.
Result<std::vector<TensorSpec>> same_float(const Attrs& attrs, Specs inputs);

}  // namespace cyb::rules
