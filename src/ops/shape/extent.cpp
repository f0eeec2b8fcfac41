// Shape, Size, Flatten, Squeeze, Unsqueeze, ExpandTo and Expand: dimensions as data and as shapes.
#include <algorithm>
#include <limits>

#include "ops/layout/reshape.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kShapeAttrs = {AttrSpec{"start", AttrKind::kI32},
                                    AttrSpec{"end", AttrKind::kI32}};

/// [begin, end) of 0..rank, both clamped.
std::pair<std::size_t, std::size_t> shape_range(const Attrs& attrs, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  const auto clamp = [r](std::int64_t v) {
    return std::clamp<std::int64_t>(v < 0 ? v + r : v, 0, r);
  };
  const std::int64_t begin = clamp(attrs.i(0)), end = std::max(begin, clamp(attrs.i(1)));
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

Result<std::vector<TensorSpec>> infer_shape(const Attrs& attrs, Specs in) {
  const auto [begin, end] = shape_range(attrs, in[0].rank());
  TensorSpec out{DType::kI64, {Dim(static_cast<std::int64_t>(end - begin))}};
  std::vector<Dim> value(in[0].dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         in[0].dims.begin() + static_cast<std::ptrdiff_t>(end));
  const bool known = std::ranges::none_of(value, [](const Dim& d) { return d.is_anonymous(); });
  if (known) out.value = std::move(value);
  return std::vector{std::move(out)};
}

Result<void> reference_shape(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto [begin, end] = shape_range(call.attrs, shape.rank());
  for (std::size_t i = begin; i < end; ++i)
    call.outputs[0].as<std::int64_t>()[i - begin] = shape[i];
  return {};
}

Result<std::vector<TensorSpec>> infer_size(const Attrs&, Specs in) {
  TensorSpec out{DType::kI64, {}};
  const Dim n = rules::product(in[0].dims);
  if (!n.is_anonymous()) out.value = std::vector{n};
  return std::vector{std::move(out)};
}

Result<void> reference_size(const RefCall& call) {
  call.outputs[0].as<std::int64_t>()[0] = call.inputs[0].shape.count();
  return {};
}

Result<void> reference_move(const RefCall& call) {
  const auto bytes = tensor_bytes(call.inputs[0].dtype, call.inputs[0].shape).value_or(0);
  if (bytes != 0) std::memcpy(call.outputs[0].data, call.inputs[0].data, bytes);
  return {};
}

constexpr std::array kAxisAttrs = {AttrSpec{"axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_flatten(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const auto rank = static_cast<std::int64_t>(in[0].rank());
  const std::int64_t axis = attrs.i(0) < 0 ? attrs.i(0) + rank : attrs.i(0);
  if (axis < 0 || axis > rank) return fail(rules::bad_payload("axis"));
  const std::span<const Dim> dims = in[0].dims;
  const auto cut = static_cast<std::size_t>(axis);
  return rules::one(in[0].dtype,
                    {rules::product(dims.first(cut)), rules::product(dims.subspan(cut))});
}

/// Sorted axes in 0..rank-1, each once; G04 otherwise.
Result<std::vector<std::size_t>> checked_axes(std::span<const std::int64_t> axes,
                                              std::size_t rank) {
  std::vector<std::size_t> out;
  for (const std::int64_t a : axes) {
    CYB_ASSIGN(const std::size_t axis, rules::axis(a, rank, "axes"));
    out.push_back(axis);
  }
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end()) return fail(rules::bad_payload("axes"));
  return out;
}

Result<std::vector<TensorSpec>> infer_squeeze(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  std::vector<Dim> dims;
  if (rules::at(in, 1).absent) {
    std::ranges::copy_if(in[0].dims, std::back_inserter(dims),
                         [](const Dim& d) { return !(d == Dim(1)); });
    return layout::with_same_value(in[0], std::move(dims));
  }
  CYB_TRY(rules::want_list(in, 1));
  const auto values = rules::constants_of(in, 1);
  if (!values) {
    const auto n = rules::length_of(in, 1);
    if (!n || *n > static_cast<std::int64_t>(in[0].rank())) {
      return fail(rules::bad_shape(dims_text(in[1].dims), "a known number of axes"));
    }
    return rules::one(in[0].dtype, std::vector<Dim>(in[0].rank() - static_cast<std::size_t>(*n),
                                                    Dim::anonymous()));
  }
  CYB_ASSIGN(const std::vector<std::size_t> axes, checked_axes(*values, in[0].rank()));
  for (std::size_t i = 0; i < in[0].rank(); ++i) {
    if (!std::ranges::binary_search(axes, i)) {
      dims.push_back(in[0].dims[i]);
    } else if (certainly_differ(in[0].dims[i], Dim(1))) {
      return fail(rules::bad_shape(dims_text(in[0].dims), "1 on the squeezed axes"));
    }
  }
  return layout::with_same_value(in[0], std::move(dims));
}

Result<std::vector<TensorSpec>> infer_unsqueeze(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  const auto n = rules::length_of(in, 1);
  if (!n || *n < 0 || *n > static_cast<std::int64_t>(Shape::kMaxRank)) {
    return fail(rules::bad_shape(dims_text(in[1].dims), "a known number of axes"));
  }
  const std::size_t rank = in[0].rank() + static_cast<std::size_t>(*n);
  const auto values = rules::constants_of(in, 1);
  if (!values) return rules::one(in[0].dtype, std::vector<Dim>(rank, Dim::anonymous()));
  CYB_ASSIGN(const std::vector<std::size_t> axes, checked_axes(*values, rank));
  std::vector<Dim> dims;
  for (std::size_t i = 0, from = 0; i < rank; ++i) {
    dims.push_back(std::ranges::binary_search(axes, i) ? Dim(1) : in[0].dims[from++]);
  }
  return layout::with_same_value(in[0], std::move(dims));
}

/// x broadcast with `shape`; a 1 or -1 keeps the dimension of x.
Result<std::vector<Dim>> expanded(const TensorSpec& x, std::span<const Dim> shape) {
  TensorSpec target{x.dtype, {}};
  for (const Dim& dim : shape) {
    if (dim.is_constant() && dim.constant() < -1) return fail(rules::bad_payload("shape"));
    target.dims.push_back(dim == Dim(-1) ? Dim(1) : dim);
  }
  return rules::broadcast(x, target);
}

constexpr std::array kExpandAttrs = {AttrSpec{"shape", AttrKind::kI64List}};

Result<std::vector<TensorSpec>> infer_expand(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const std::vector<Dim> shape(attrs.list(0).begin(), attrs.list(0).end());
  CYB_ASSIGN(std::vector<Dim> dims, expanded(in[0], shape));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<std::vector<TensorSpec>> infer_expand_to(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  if (const auto* value = rules::value_of(in, 1)) {
    CYB_ASSIGN(std::vector<Dim> dims, expanded(in[0], *value));
    return rules::one(in[0].dtype, std::move(dims));
  }
  CYB_ASSIGN(std::vector<Dim> dims, layout::unknown_dims(in, 1));
  if (dims.size() < in[0].rank()) dims.resize(in[0].rank(), Dim::anonymous());
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_expand(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const Shape& out = call.outputs[0].shape;
  const auto strides = ref::broadcast_strides(out, x.shape);
  return ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    ref::for_each_index(out, [&](std::size_t i, const ref::Index& index) {
      call.outputs[0].as<T>()[i] = x.as<T>()[ref::dot(index, strides, out.rank())];
    });
    return {};
  });
}

}  // namespace

OpImpl impl_Shape() {
  return {.attrs = kShapeAttrs, .infer = infer_shape, .reference = reference_shape};
}
OpImpl impl_Size() {
  return {.infer = infer_size, .reference = reference_size};
}
OpImpl impl_Flatten() {
  return {.attrs = kAxisAttrs, .infer = infer_flatten, .reference = reference_move};
}
OpImpl impl_Squeeze() {
  return {.infer = infer_squeeze, .reference = reference_move};
}
OpImpl impl_Unsqueeze() {
  return {.infer = infer_unsqueeze, .reference = reference_move};
}
OpImpl impl_Expand() {
  return {.attrs = kExpandAttrs, .infer = infer_expand, .reference = reference_expand};
}
OpImpl impl_ExpandTo() {
  return {.infer = infer_expand_to, .reference = reference_expand};
}

}  // namespace cyb
