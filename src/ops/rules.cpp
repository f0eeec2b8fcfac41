// Shape and dtype rules shared by the ops. Errors have stable codes; texts are the tails of
// G04..G10.
#include "ops/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cyb::rules {

Error bad_payload(std::string_view field) {
  return Error(ErrorKind::kInvalidInput, "G04", fmt::format("bad payload: {}", field));
}
Error bad_count(std::size_t got, std::string_view needs) {
  return Error(ErrorKind::kInvalidInput, "G05", fmt::format("{} inputs, needs {}", got, needs));
}
Error bad_dtype(std::size_t input, DType dtype) {
  return Error(ErrorKind::kInvalidInput, "G09",
               fmt::format("dtype {} not allowed for input {}", dtype_name(dtype), input));
}
Error bad_shape(std::string_view got, std::string_view expected) {
  return Error(ErrorKind::kShapeMismatch, "G10",
               fmt::format("shape {}, expected {}", got, expected));
}

const TensorSpec& at(Specs inputs, std::size_t k) noexcept {
  static const TensorSpec none = TensorSpec::none();
  return k < inputs.size() ? inputs[k] : none;
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kF16;
}
bool is_int(DType dtype) noexcept {
  return format_info(dtype).cls == DTypeClass::kInt;
}
bool is_weight(DType dtype) noexcept {
  const FormatInfo& format = format_info(dtype);
  return format.decode != nullptr && format.cls != DTypeClass::kInt &&
         format.cls != DTypeClass::kBool;
}

Result<void> want_float(Specs inputs, std::size_t k) {
  if (!is_float(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_dtype(Specs inputs, std::size_t k, DType dtype) {
  if (inputs[k].dtype != dtype) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_parameter(Specs inputs, std::size_t k) {
  const DType dtype = inputs[k].dtype;
  if (dtype != DType::kF32 && dtype != inputs[0].dtype) return fail(bad_dtype(k, dtype));
  return {};
}
Result<void> want_weight(Specs inputs, std::size_t k) {
  if (!is_weight(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_rank(Specs inputs, std::size_t k, std::size_t rank) {
  if (inputs[k].rank() == rank) return {};
  return fail(bad_shape(dims_text(inputs[k].dims), fmt::format("{} dimensions", rank)));
}
Result<void> want_min_rank(Specs inputs, std::size_t k, std::size_t rank) {
  if (inputs[k].rank() >= rank) return {};
  return fail(bad_shape(dims_text(inputs[k].dims), fmt::format("{} or more dimensions", rank)));
}
Result<void> want_dims(Specs inputs, std::size_t k, std::span<const Dim> dims) {
  const bool ok = std::ranges::equal(
      inputs[k].dims, dims, [](const Dim& a, const Dim& b) { return merge(a, b).has_value(); });
  if (!ok) return fail(bad_shape(dims_text(inputs[k].dims), dims_text(dims)));
  return {};
}
Result<void> want_elements(Specs inputs, std::size_t k) {
  if (is_block(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_nonempty(const TensorSpec& spec, std::size_t axis) {
  if (spec.dims[axis] == Dim(0)) {
    return fail(bad_shape(dims_text(spec.dims), fmt::format("dimension {} not empty", axis)));
  }
  return {};
}

std::optional<Dim> merge(const Dim& a, const Dim& b) {
  if (certainly_differ(a, b)) return std::nullopt;
  if (a.is_constant()) return a;
  if (b.is_constant() || a.is_anonymous()) return b;
  return a;
}

Result<std::vector<Dim>> broadcast(const TensorSpec& a, const TensorSpec& b) {
  const TensorSpec& longer = a.rank() >= b.rank() ? a : b;
  const TensorSpec& shorter = a.rank() >= b.rank() ? b : a;
  std::vector<Dim> out = longer.dims;
  const std::size_t shift = longer.rank() - shorter.rank();
  for (std::size_t i = 0; i < shorter.rank(); ++i) {
    Dim& dim = out[shift + i];
    if (shorter.dims[i] == Dim(1)) continue;
    if (dim == Dim(1)) {
      dim = shorter.dims[i];
      continue;
    }
    const auto merged = merge(dim, shorter.dims[i]);
    if (!merged)
      return fail(bad_shape(dims_text(b.dims), "one that broadcasts with " + dims_text(a.dims)));
    dim = *merged;
  }
  return out;
}

Result<std::size_t> axis(std::int64_t axis, std::size_t rank, std::string_view field) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n) return fail(bad_payload(field));
  return static_cast<std::size_t>(axis < 0 ? axis + n : axis);
}

std::vector<Dim> with_last(const TensorSpec& spec, Dim last) {
  std::vector<Dim> dims = spec.dims;
  dims.back() = std::move(last);
  return dims;
}

Result<std::vector<TensorSpec>> same_float(const Attrs&, Specs inputs) {
  CYB_TRY(want_float(inputs, 0));
  return one(inputs[0].dtype, inputs[0].dims);
}

}  // namespace cyb::rules
