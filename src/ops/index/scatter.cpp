// ScatterElements (tag 378), ScatterNd (379), TensorScatter (393): a copy of x with elements or
// slices replaced or combined, in the order of the indices.
#include "ops/index/index.hpp"
#include "ops/math/is_nan.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

enum Reduction : std::int64_t { kNone, kAdd, kMul, kMax, kMin };

template <class C>
C combine(C old, C v, std::int64_t reduction) {
  switch (reduction) {
    case kAdd:
      if constexpr (std::is_integral_v<C>) {
        return static_cast<C>(static_cast<std::uint64_t>(old) + static_cast<std::uint64_t>(v));
      } else {
        return old + v;
      }
    case kMul:
      return ref::multiply(old, v);
    case kMax:
      return is_nan(old) || v < old ? old : v;
    case kMin:
      return is_nan(old) || old < v ? old : v;
    default:
      return v;
  }
}

/// Moves of elements need no arithmetic: any dtype; else numbers.
Result<void> check_dtypes(const Attrs& attrs, std::size_t k, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, k, kMin, "reduction"));
  CYB_TRY(rules::want_elements(in, 0));
  if (attrs.i(k) != kNone) CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  return rules::want_dtype(in, 2, in[0].dtype);
}

constexpr std::array kElementAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                      AttrSpec{"reduction", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_scatter_elements(const Attrs& attrs, Specs in) {
  CYB_TRY(check_dtypes(attrs, 1, in));
  CYB_TRY(rules::want_rank(in, 1, in[0].rank()));
  CYB_TRY(rules::want_dims(in, 2, in[1].dims));
  CYB_TRY(rules::axis(attrs.i(0), in[0].rank(), "axis"));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> copy_input(const RefCall& call) {
  const auto bytes = tensor_bytes(call.inputs[0].dtype, call.inputs[0].shape).value_or(0);
  if (bytes != 0) std::memcpy(call.outputs[0].data, call.inputs[0].data, bytes);
  return {};
}

/// y[at] combined with updates[from], n elements, on the output's own memory.
void update(const RefCall& call, std::size_t at, std::size_t from, std::size_t n,
            std::int64_t reduction) {
  const MutableTensorView& y = call.outputs[0];
  const TensorView& u = call.inputs[2];
  const std::size_t bytes = ref::element_bytes(y.dtype);
  if (reduction == kNone) {
    if (n != 0) std::memcpy(y.data + at * bytes, u.data + from * bytes, n * bytes);
    return;
  }
  const Shape shape{static_cast<std::int64_t>(n)};
  const MutableTensorView old{y.dtype, shape, y.data + at * bytes};
  ref::visit_number(y.dtype, [&]<class C>(ref::Type<C>) {
    const ref::Elements<C> a(old), b(TensorView{u.dtype, shape, u.data + from * bytes});
    ref::Outputs<C> out(old);
    for (std::size_t i = 0; i < n; ++i) out[i] = combine(a[i], b[i], reduction);
    out.finish();
  });
}

Result<void> reference_scatter_elements(const RefCall& call) {
  CYB_TRY(copy_input(call));
  const TensorView& indices = call.inputs[1];
  const Shape& shape = call.inputs[0].shape;
  const std::size_t rank = shape.rank(), axis = ref::axis_of(call.attrs.i(0), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (d != axis && indices.shape[d] > shape[d])
      return fail(shape_mismatch("ScatterElements", shape.text(), indices.shape.text()));
  }
  const auto strides = ref::strides_of(shape);
  Result<void> done;
  ref::for_each_index(indices.shape, [&](std::size_t i, const ref::Index& index) {
    const auto k = checked_index("ScatterElements", ref::integer_at(indices, i), shape[axis]);
    if (!k) {
      done = fail(k.error());
      return;
    }
    ref::Index at = index;
    at[axis] = *k;
    update(call, ref::dot(at, strides, rank), i, 1, call.attrs.i(1));
  });
  return done;
}

constexpr std::array kNdAttrs = {AttrSpec{"reduction", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_scatter_nd(const Attrs& attrs, Specs in) {
  CYB_TRY(check_dtypes(attrs, 0, in));
  CYB_TRY(rules::want_min_rank(in, 1, 1));
  const Dim& last = in[1].dims.back();
  const bool fits =
      last.is_constant() && last.constant() <= static_cast<std::int64_t>(in[0].rank());
  if (!fits)
    return fail(
        rules::bad_shape(dims_text(in[1].dims), "a last dimension of at most the rank of input 0"));
  std::vector<Dim> dims(in[1].dims.begin(), in[1].dims.end() - 1);
  dims.insert(dims.end(), in[0].dims.begin() + static_cast<std::ptrdiff_t>(last.constant()),
              in[0].dims.end());
  CYB_TRY(rules::want_rank(in, 2, dims.size()));
  CYB_TRY(rules::want_dims(in, 2, dims));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_scatter_nd(const RefCall& call) {
  CYB_TRY(copy_input(call));
  const TensorView& indices = call.inputs[1];
  const Shape& shape = call.inputs[0].shape;
  const std::size_t depth = ref::extent(indices.shape, indices.shape.rank() - 1);
  const std::size_t tuples = ref::extent(indices.shape, 0, indices.shape.rank() - 1);
  const std::size_t row = ref::extent(shape, depth, shape.rank());
  for (std::size_t t = 0; t < tuples; ++t) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < depth; ++k) {
      CYB_ASSIGN(const std::size_t i,
                 checked_index("ScatterNd", ref::integer_at(indices, t * depth + k), shape[k]));
      at = at * ref::extent(shape, k) + i;
    }
    update(call, at * row, t * row, row, call.attrs.i(0));
  }
  return {};
}

constexpr std::array kTensorAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                     AttrSpec{"circular", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_tensor_scatter(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  if (axis == 0) return fail(rules::bad_payload("axis"));
  std::vector<Dim> dims = in[0].dims;
  CYB_TRY(rules::want_rank(in, 1, dims.size()));
  dims[axis] = in[1].dims[axis];
  CYB_TRY(rules::want_dims(in, 1, dims));
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_index(in, 2));
    CYB_TRY(rules::want_dims(in, 2, std::span(in[0].dims).first(1)));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

/// Rows of `update` written from index[b] on along the axis, of each batch b.
Result<void> reference_tensor_scatter(const RefCall& call) {
  CYB_TRY(copy_input(call));
  const Shape &shape = call.inputs[0].shape, &update_shape = call.inputs[1].shape;
  const std::size_t rank = shape.rank(), axis = ref::axis_of(call.attrs.i(0), rank);
  const ref::AxisView x(shape, axis), u(update_shape, axis);
  const std::size_t row = x.inner * ref::element_bytes(call.inputs[0].dtype);
  const TensorView index = ref::input(call, 2);
  const std::size_t per_batch = ref::extent(shape, 1, axis);
  for (std::size_t o = 0; o < x.outer; ++o) {
    const std::int64_t start = index.present() ? ref::integer_at(index, o / per_batch) : 0;
    for (std::size_t k = 0; k < u.n; ++k) {
      std::int64_t at = start + static_cast<std::int64_t>(k);
      if (call.attrs.i(1) != 0 && x.n != 0) at %= static_cast<std::int64_t>(x.n);
      if (start < 0) at = -static_cast<std::int64_t>(x.n) - 1;
      CYB_ASSIGN(const std::size_t to, checked_index("TensorScatter", at, shape[axis]));
      if (row != 0) {
        std::memcpy(call.outputs[0].data + (o * x.n + to) * row,
                    call.inputs[1].data + (o * u.n + k) * row, row);
      }
    }
  }
  return {};
}

}  // namespace

OpImpl impl_ScatterElements() {
  return {.attrs = kElementAttrs,
          .infer = infer_scatter_elements,
          .reference = reference_scatter_elements};
}
OpImpl impl_ScatterNd() {
  return {.attrs = kNdAttrs, .infer = infer_scatter_nd, .reference = reference_scatter_nd};
}
OpImpl impl_TensorScatter() {
  return {
      .attrs = kTensorAttrs, .infer = infer_tensor_scatter, .reference = reference_tensor_scatter};
}

}  // namespace cyb
