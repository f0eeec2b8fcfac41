// Integer products: MatmulInteger (tag 437), ConvInteger (438), QLinearMatmul (435), QLinearConv
// (436). Sums of (a - a_zero)(b - b_zero) in i32, wrapping; then scaled and rounded once.
#include <cmath>

#include "ops/conv/geometry.hpp"
#include "ops/linear/product.hpp"
#include "ops/op_impl.hpp"
#include "ops/quant/integer_sums.hpp"
#include "ops/quant/quantise.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using conv::Window;
using rules::Specs;

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

std::size_t last(const Shape& shape) {
  return static_cast<std::size_t>(shape.back());
}

/// Product of a [..., M, K] and b [..., K, N]; zeros of a per row, of b per column.
void integer_matmul(const RefCall& call, std::size_t b, const TensorView& a_zero,
                    const TensorView& b_zero, std::int32_t* y) {
  const TensorView &left = call.inputs[0], &right = call.inputs[b];
  const linear::MatmulShape s(left.shape, right.shape);
  quant::integer_matmul(s, quant::shifted(left, a_zero, std::max<std::size_t>(s.k, 1), s.m),
                        quant::shifted(right, b_zero, 1, last(right.shape)), y, call.pool);
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
  integer_matmul(call, 1, ref::input(call, 2), ref::input(call, 3),
                 call.outputs[0].as<std::int32_t>());
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
  std::vector<std::int32_t> sums(static_cast<std::size_t>(call.outputs[0].shape.count()));
  integer_matmul(call, 3, in[2], in[5], sums.data());
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

/// store(at, o, sum) for every output, at its offset in y; planes are shared among the threads.
template <class Store>
void integer_conv(const RefCall& call, std::size_t w, const TensorView& x_zero,
                  const TensorView& w_zero, Store store) {
  const Shape &xs = call.inputs[0].shape, &ws = call.inputs[w].shape;
  const quant::Shifted x = quant::shifted(call.inputs[0], x_zero, 1, 1);
  const quant::Shifted weight =
      quant::shifted(call.inputs[w], w_zero, ref::extent(ws, 1, ws.rank()), ref::extent(ws, 0));
  const conv::Problem p = conv::problem_of(xs, ws, call.outputs[0].shape, window_of(call.attrs),
                                           static_cast<std::size_t>(call.attrs.i(3)));
  const std::size_t k = p.in_channels * p.volume(), channels = p.groups * p.out_channels;
  const std::size_t planes = p.batch * channels, work = planes * p.out_size() * k;
  ref::parallel(call.pool, planes, work, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int32_t> sums(p.out_size());
    for (std::size_t n = begin; n < end; ++n) {
      const std::size_t o = n % channels, group = o / p.out_channels;
      const std::size_t plane = (n / channels * p.groups + group) * p.in_channels * p.in_size();
      quant::integer_plane(p, x.data() + plane, weight.data() + o * k, sums.data());
      for (std::size_t i = 0; i < sums.size(); ++i) store(n * sums.size() + i, o, sums[i]);
    }
  });
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
