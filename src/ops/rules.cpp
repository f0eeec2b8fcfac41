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
bool is_real(DType dtype) noexcept {
  return is_float(dtype) || dtype == DType::kF64;
}
bool is_number(DType dtype) noexcept {
  return is_real(dtype) || is_int(dtype);
}
bool is_element(DType dtype) noexcept {
  return is_number(dtype) || dtype == DType::kBool;
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
Result<void> want_real(Specs inputs, std::size_t k) {
  if (!is_real(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_number(Specs inputs, std::size_t k) {
  if (!is_number(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_int(Specs inputs, std::size_t k) {
  if (!is_int(inputs[k].dtype)) return fail(bad_dtype(k, inputs[k].dtype));
  return {};
}
Result<void> want_index(Specs inputs, std::size_t k) {
  const DType dtype = inputs[k].dtype;
  if (dtype != DType::kI32 && dtype != DType::kI64) return fail(bad_dtype(k, dtype));
  return {};
}
Result<void> want_list(Specs inputs, std::size_t k) {
  CYB_TRY(want_index(inputs, k));
  if (inputs[k].rank() <= 1) return {};
  return fail(bad_shape(dims_text(inputs[k].dims), "at most 1 dimension"));
}
Result<void> want_same_dtype(Specs inputs, std::size_t first) {
  for (std::size_t k = first; k < inputs.size(); ++k) {
    if (!inputs[k].absent) CYB_TRY(want_dtype(inputs, k, inputs[0].dtype));
  }
  return {};
}
Result<void> want_at_most(const Attrs& attrs, std::size_t k, std::int64_t largest,
                          std::string_view field) {
  if (attrs.i(k) < 0 || attrs.i(k) > largest) return fail(bad_payload(field));
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

const std::vector<Dim>* value_of(Specs inputs, std::size_t k) noexcept {
  return k < inputs.size() && inputs[k].value ? &*inputs[k].value : nullptr;
}

std::optional<std::vector<std::int64_t>> constants_of(Specs inputs, std::size_t k) {
  const std::vector<Dim>* value = value_of(inputs, k);
  if (value == nullptr) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const Dim& dim : *value) {
    if (!dim.is_constant()) return std::nullopt;
    out.push_back(dim.constant());
  }
  return out;
}

std::optional<std::int64_t> length_of(Specs inputs, std::size_t k) noexcept {
  const TensorSpec& spec = at(inputs, k);
  if (spec.absent) return std::nullopt;
  if (spec.rank() == 0) return 1;
  if (!spec.dims[0].is_constant()) return std::nullopt;
  return spec.dims[0].constant();
}

Dim product(std::span<const Dim> dims) {
  Dim out(1);
  bool known = true;
  for (const Dim& dim : dims) {
    if (dim == Dim(0)) return dim;
    if (dim.is_constant()) {
      out = out * dim.constant();
    } else if (out.is_constant()) {
      out = dim * out.constant();
    } else {
      known = false;
    }
  }
  return known ? out : Dim::anonymous();
}

Result<std::vector<TensorSpec>> same_real(const Attrs&, Specs inputs) {
  CYB_TRY(want_real(inputs, 0));
  return one(inputs[0].dtype, inputs[0].dims);
}

Result<std::vector<TensorSpec>> same_number(const Attrs&, Specs inputs) {
  CYB_TRY(want_number(inputs, 0));
  return one(inputs[0].dtype, inputs[0].dims);
}

Result<std::vector<TensorSpec>> same_float(const Attrs&, Specs inputs) {
  CYB_TRY(want_float(inputs, 0));
  return one(inputs[0].dtype, inputs[0].dims);
}

}  // namespace cyb::rules
