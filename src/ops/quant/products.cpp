// Integer products: MatmulInteger (tag 437), ConvInteger (438), QLinearMatmul (435), QLinearConv
// (436). Sums of (a - a_zero)(b - b_zero) in i32, wrapping; then scaled and rounded once.
#include <cmath>

#include "ops/conv/geometry.hpp"
#include "ops/linear/product.hpp"
#include "ops/op_impl.hpp"
#include "ops/quant/quantise.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using conv::Window;
using rules::Specs;
using Ints = std::vector<std::int32_t>;

bool is_byte(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

Result<void> want_byte(Specs in, std::size_t k) {
  if (!is_byte(in[k].dtype)) return fail(rules::bad_dtype(k, in[k].dtype));
  return {};
}

/// Zero point k is absent, one value, or one per element of the axis that `n` counts.
Result<void> check_zero(Specs in, std::size_t k, std::size_t of, const Dim& n) {
  if (rules::at(in, k).absent) return {};
  CYB_TRY(rules::want_dtype(in, k, in[of].dtype));
  const Dim count = rules::product(in[k].dims);
  if (count == Dim(1) || rules::merge(count, n)) return {};
  return fail(rules::bad_shape(dims_text(in[k].dims), "one value, or one per row or channel"));
}

/// x - zero, with the zero of axis element (i / inner) % n.
Ints shifted(const TensorView& x, const TensorView& zero, std::size_t inner, std::size_t n) {
  Ints out(static_cast<std::size_t>(x.shape.count()));
  const bool many = zero.present() && zero.shape.count() > 1;
  const auto single =
      zero.present() && !many ? static_cast<std::int32_t>(ref::integer_at(zero, 0)) : 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto z = many ? static_cast<std::int32_t>(ref::integer_at(zero, i / inner % n)) : single;
    out[i] = static_cast<std::int32_t>(ref::integer_at(x, i)) - z;
  }
  return out;
}

std::size_t last(const Shape& shape) {
  return static_cast<std::size_t>(shape.back());
}

/// Product of a [..., M, K] and b [..., K, N]; zeros of a per row, of b per column.
Ints integer_matmul(const TensorView& a, const TensorView& a_zero, const TensorView& b,
                    const TensorView& b_zero) {
  const linear::MatmulShape s(a.shape, b.shape);
  const Ints left = shifted(a, a_zero, std::max<std::size_t>(s.k, 1), s.m),
             right = shifted(b, b_zero, 1, last(b.shape));
  Ints y(s.a_offsets.size() * s.m * s.n);
  for (std::size_t batch = 0; batch < s.a_offsets.size(); ++batch) {
    linear::multiply(s, left.data() + s.a_offsets[batch], right.data() + s.b_offsets[batch],
                     y.data() + batch * s.m * s.n);
  }
  return y;
}

Dim rows_of(const TensorSpec& a) {
  return a.rank() > 1 ? a.dims[a.rank() - 2] : Dim(1);
}
Dim columns_of(const TensorSpec& b) {
  return b.rank() > 1 ? b.dims.back() : Dim(1);
}

Result<std::vector<TensorSpec>> infer_matmul_integer(const Attrs&, Specs in) {
  CYB_TRY(want_byte(in, 0));
  CYB_TRY(want_byte(in, 1));
  CYB_ASSIGN(std::vector<Dim> dims, linear::matmul_dims(in[0], in[1]));
  CYB_TRY(check_zero(in, 2, 0, rows_of(in[0])));
  CYB_TRY(check_zero(in, 3, 1, columns_of(in[1])));
  return rules::one(DType::kI32, std::move(dims));
}

Result<void> reference_matmul_integer(const RefCall& call) {
  const Ints y =
      integer_matmul(call.inputs[0], ref::input(call, 2), call.inputs[1], ref::input(call, 3));
  std::ranges::copy(y, call.outputs[0].as<std::int32_t>());
  return {};
}

Result<void> want_scale(Specs in, std::size_t k, const Dim& n) {
  CYB_TRY(rules::want_real(in, k));
  const Dim count = rules::product(in[k].dims);
  if (count == Dim(1) || rules::merge(count, n)) return {};
  return fail(rules::bad_shape(dims_text(in[k].dims), "one value, or one per row or channel"));
}

Result<std::vector<TensorSpec>> infer_qlinear_matmul(const Attrs&, Specs in) {
  CYB_TRY(want_byte(in, 0));
  CYB_TRY(want_byte(in, 3));
  CYB_TRY(want_byte(in, 7));
  CYB_ASSIGN(std::vector<Dim> dims, linear::matmul_dims(in[0], in[3]));
  CYB_TRY(want_scale(in, 1, rows_of(in[0])));
  CYB_TRY(check_zero(in, 2, 0, rows_of(in[0])));
  CYB_TRY(want_scale(in, 4, columns_of(in[3])));
  CYB_TRY(check_zero(in, 5, 3, columns_of(in[3])));
  CYB_TRY(want_scale(in, 6, Dim(1)));
  return rules::one(in[7].dtype, std::move(dims));
}

/// sum scaled by a_scale b_scale / y_scale, rounded, plus the zero of y.
template <class T>
T requantise(std::int32_t sum, float scale, std::int64_t zero) {
  return quant::quantise<T>(static_cast<float>(sum) * scale, 1.0F, zero);
}

float scale_at(const TensorView& view, std::size_t k) {
  return static_cast<float>(ref::number_at(view, view.shape.count() > 1 ? k : 0));
}

Result<void> reference_qlinear_matmul(const RefCall& call) {
  const auto& in = call.inputs;
  const Ints sums = integer_matmul(in[0], in[2], in[3], in[5]);
  const linear::MatmulShape s(in[0].shape, in[3].shape);
  const std::int64_t zero = ref::integer_at(in[7], 0);
  return ref::visit_int(in[7].dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float scale =
          scale_at(in[1], i / s.n % s.m) * scale_at(in[4], i % s.n) / scale_at(in[6], 0);
      call.outputs[0].as<T>()[i] = requantise<T>(sums[i], scale, zero);
    }
    return {};
  });
}

constexpr std::array kConvAttrs = {
    AttrSpec{"strides", AttrKind::kU32List}, AttrSpec{"dilations", AttrKind::kU32List},
    AttrSpec{"pads", AttrKind::kU32List}, AttrSpec{"groups", AttrKind::kU32},
    AttrSpec{"auto_pad", AttrKind::kU8}};

Window window_of(const Attrs& a) {
  return {{}, a.list(0), a.list(1), a.list(2), a.i(4), false};
}

template <class Store>
void integer_conv(const RefCall& call, std::size_t w, const TensorView& x_zero,
                  const TensorView& w_zero, Store store) {
  const Shape &xs = call.inputs[0].shape, &ws = call.inputs[w].shape;
  const Ints x = shifted(call.inputs[0], x_zero, 1, 1);
  const Ints weight =
      shifted(call.inputs[w], w_zero, ref::extent(ws, 1, ws.rank()), ref::extent(ws, 0));
  const conv::Problem p = conv::problem_of(xs, ws, call.outputs[0].shape, window_of(call.attrs),
                                           static_cast<std::size_t>(call.attrs.i(3)));
  conv::convolve(p, x.data(), weight.data(), call.pool, store);
}

Result<std::vector<TensorSpec>> infer_conv_integer(const Attrs& attrs, Specs in) {
  CYB_TRY(want_byte(in, 0));
  CYB_TRY(want_byte(in, 1));
  CYB_ASSIGN(std::vector<TensorSpec> y,
             conv::infer_conv(in.first(2), window_of(attrs), attrs.i(3)));
  CYB_TRY(check_zero(in, 2, 0, Dim(1)));
  CYB_TRY(check_zero(in, 3, 1, in[1].dims[0]));
  y[0].dtype = DType::kI32;
  return y;
}

Result<void> reference_conv_integer(const RefCall& call) {
  auto* y = call.outputs[0].as<std::int32_t>();
  integer_conv(call, 1, ref::input(call, 2), ref::input(call, 3),
               [y](std::size_t at, std::size_t, std::int32_t sum) { y[at] = sum; });
  return {};
}

/// Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b i32?.
Result<std::vector<TensorSpec>> infer_qlinear_conv(const Attrs& attrs, Specs in) {
  CYB_TRY(want_byte(in, 0));
  CYB_TRY(want_byte(in, 3));
  CYB_TRY(want_byte(in, 7));
  const std::array operands = {in[0], in[3]};
  CYB_ASSIGN(std::vector<TensorSpec> y, conv::infer_conv(operands, window_of(attrs), attrs.i(3)));
  CYB_TRY(want_scale(in, 1, Dim(1)));
  CYB_TRY(check_zero(in, 2, 0, Dim(1)));
  CYB_TRY(want_scale(in, 4, in[3].dims[0]));
  CYB_TRY(check_zero(in, 5, 3, in[3].dims[0]));
  CYB_TRY(want_scale(in, 6, Dim(1)));
  if (!rules::at(in, 8).absent) {
    CYB_TRY(rules::want_dtype(in, 8, DType::kI32));
    CYB_TRY(rules::want_dims(in, 8, std::span(&in[3].dims[0], 1)));
  }
  y[0].dtype = in[7].dtype;
  return y;
}

Result<void> reference_qlinear_conv(const RefCall& call) {
  const auto& in = call.inputs;
  const TensorView bias = ref::input(call, 8);
  const std::int64_t zero = ref::integer_at(in[7], 0);
  return ref::visit_int(in[7].dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    auto* y = call.outputs[0].as<T>();
    integer_conv(call, 3, in[2], in[5], [&](std::size_t at, std::size_t o, std::int32_t sum) {
      if (bias.present())
        sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                        static_cast<std::uint32_t>(bias.as<std::int32_t>()[o]));
      y[at] =
          requantise<T>(sum, scale_at(in[1], 0) * scale_at(in[4], o) / scale_at(in[6], 0), zero);
    });
    return {};
  });
}

}  // namespace

OpImpl impl_MatmulInteger() {
  return {.infer = infer_matmul_integer, .reference = reference_matmul_integer};
}
OpImpl impl_QLinearMatmul() {
  return {.infer = infer_qlinear_matmul, .reference = reference_qlinear_matmul};
}
OpImpl impl_ConvInteger() {
  return {.attrs = kConvAttrs, .infer = infer_conv_integer, .reference = reference_conv_integer};
}
OpImpl impl_QLinearConv() {
  return {.attrs = kConvAttrs, .infer = infer_qlinear_conv, .reference = reference_qlinear_conv};
}

}  // namespace cyb
