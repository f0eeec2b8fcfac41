// Matrix products of all number dtypes: BatchMatmul (tag 410, NumPy's matmul), Gemm (411), Kron
// (161), LoraApply (160), RoutedMatmul (310).
#include <algorithm>

#include "ops/layout/convert.hpp"
#include "ops/linear/product.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace linear {

Result<std::vector<Dim>> matmul_dims(const TensorSpec& a, const TensorSpec& b) {
  if (a.rank() == 0 || b.rank() == 0) return fail(rules::bad_shape("[]", "1 or more dimensions"));
  const Dim& k = a.dims.back();
  const Dim& bk = b.rank() == 1 ? b.dims[0] : b.dims[b.rank() - 2];
  if (!rules::merge(k, bk))
    return fail(rules::bad_shape(dims_text(b.dims), "an inner dimension of " + k.text({})));
  const auto batch = [](const TensorSpec& s) {
    const auto keep = static_cast<std::ptrdiff_t>(std::max<std::size_t>(s.rank(), 2) - 2);
    return TensorSpec{s.dtype, std::vector<Dim>(s.dims.begin(), s.dims.begin() + keep)};
  };
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(batch(a), batch(b)));
  if (a.rank() > 1) dims.push_back(a.dims[a.rank() - 2]);
  if (b.rank() > 1) dims.push_back(b.dims.back());
  return dims;
}

MatmulShape::MatmulShape(const Shape& a, const Shape& b) {
  const std::size_t ar = a.rank(), br = b.rank();
  m = ar > 1 ? ref::extent(a, ar - 2) : 1;
  k = ref::extent(a, ar - 1);
  n = br > 1 ? ref::extent(b, br - 1) : 1;
  const Shape a_batch(a.dims().first(std::max<std::size_t>(ar, 2) - 2));
  const Shape b_batch(b.dims().first(std::max<std::size_t>(br, 2) - 2));
  const std::size_t rank = std::max(a_batch.rank(), b_batch.rank());
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t from_end = rank - d;
    const std::int64_t u = from_end <= a_batch.rank() ? a_batch[a_batch.rank() - from_end] : 1;
    const std::int64_t v = from_end <= b_batch.rank() ? b_batch[b_batch.rank() - from_end] : 1;
    dims[d] = u == 1 ? v : u;
  }
  const Shape batch(std::span(dims.data(), rank));
  const auto as = ref::broadcast_strides(batch, a_batch),
             bs = ref::broadcast_strides(batch, b_batch);
  ref::for_each_index(batch, [&](std::size_t, const ref::Index& index) {
    a_offsets.push_back(ref::dot(index, as, rank) * m * k);
    b_offsets.push_back(ref::dot(index, bs, rank) * k * n);
  });
}

}  // namespace linear

namespace {

using rules::Specs;

Result<std::vector<TensorSpec>> infer_batch_matmul(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_ASSIGN(std::vector<Dim> dims, linear::matmul_dims(in[0], in[1]));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_batch_matmul(const RefCall& call) {
  const linear::MatmulShape s(call.inputs[0].shape, call.inputs[1].shape);
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> a(call.inputs[0]), b(call.inputs[1]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t batch = 0; batch < s.a_offsets.size(); ++batch) {
      linear::multiply(s, a.data() + s.a_offsets[batch], b.data() + s.b_offsets[batch],
                       y.data() + batch * s.m * s.n, call.pool);
    }
    y.finish();
    return {};
  });
}

constexpr std::array kGemmAttrs = {
    AttrSpec{"alpha", AttrKind::kF32}, AttrSpec{"beta", AttrKind::kF32},
    AttrSpec{"trans_a", AttrKind::kU8}, AttrSpec{"trans_b", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_gemm(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  CYB_TRY(rules::want_rank(in, 0, 2));
  CYB_TRY(rules::want_rank(in, 1, 2));
  const std::size_t ta = attrs.i(2) != 0 ? 1 : 0, tb = attrs.i(3) != 0 ? 1 : 0;
  const Dim &m = in[0].dims[ta], &k = in[0].dims[1 - ta], &n = in[1].dims[1 - tb];
  if (!rules::merge(k, in[1].dims[tb])) {
    return fail(rules::bad_shape(dims_text(in[1].dims), "an inner dimension of " + k.text({})));
  }
  TensorSpec out{in[0].dtype, {m, n}};
  if (!rules::at(in, 2).absent) {
    CYB_ASSIGN(const std::vector<Dim> dims, rules::broadcast(out, in[2]));
    if (dims.size() != 2) return fail(rules::bad_shape(dims_text(in[2].dims), dims_text(out.dims)));
  }
  return std::vector{std::move(out)};
}

Result<void> reference_gemm(const RefCall& call) {
  const Shape &as = call.inputs[0].shape, &bs = call.inputs[1].shape, &out = call.outputs[0].shape;
  const bool ta = call.attrs.i(2) != 0, tb = call.attrs.i(3) != 0;
  const std::size_t m = ref::extent(out, 0), n = ref::extent(out, 1),
                    k = ref::extent(as, ta ? 0 : 1);
  const std::size_t a_row = ta ? 1 : k, a_step = ta ? m : 1, b_row = tb ? 1 : ref::extent(bs, 1),
                    b_column = tb ? k : 1;
  const TensorView cv = ref::input(call, 2);
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> a(call.inputs[0]), b(call.inputs[1]), c(cv);
    ref::Outputs<C> y(call.outputs[0]);
    const auto alpha = convert::to<C>(call.attrs.f(0)), beta = convert::to<C>(call.attrs.f(1));
    const auto cs = c.present() ? ref::broadcast_strides(out, cv.shape) : ref::Strides{};
    ref::parallel(call.pool, n, m * n * k, [&](std::size_t begin, std::size_t end) {
      std::vector<C> row(k), column(k);
      for (std::size_t q = begin; q < end; ++q) {
        for (std::size_t t = 0; t < k; ++t) column[t] = b[t * b_row + q * b_column];
        for (std::size_t r = 0; r < m; ++r) {
          for (std::size_t t = 0; t < k && a_step != 1; ++t) row[t] = a[r * a_row + t * a_step];
          const C* left = a_step == 1 ? a.data() + r * a_row : row.data();
          C v = ref::multiply(alpha, linear::dot(left, column.data(), k));
          if (c.present()) v = static_cast<C>(v + ref::multiply(beta, c[r * cs[0] + q * cs[1]]));
          y[r * n + q] = v;
        }
      }
    });
    y.finish();
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_kron(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_rank(in, 0, 2));
  CYB_TRY(rules::want_rank(in, 1, 2));
  return rules::one(in[0].dtype, {rules::product(std::array{in[0].dims[0], in[1].dims[0]}),
                                  rules::product(std::array{in[0].dims[1], in[1].dims[1]})});
}

Result<void> reference_kron(const RefCall& call) {
  const Shape &bs = call.inputs[1].shape, &out = call.outputs[0].shape;
  const std::size_t p = ref::extent(bs, 0), q = ref::extent(bs, 1), columns = ref::extent(out, 1);
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> a(call.inputs[0]), b(call.inputs[1]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t r = i / columns, c = i % columns;
      y[i] = ref::multiply(a[r / p * (columns / q) + c / q], b[r % p * q + c % q]);
    }
    y.finish();
    return {};
  });
}

constexpr std::array kLoraAttrs = {AttrSpec{"rank", AttrKind::kU32},
                                   AttrSpec{"alpha", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_lora(const Attrs& attrs, Specs in) {
  if (attrs.i(0) < 1) return fail(rules::bad_payload("rank"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_min_rank(in, 1, 1));
  CYB_TRY(rules::want_weight(in, 2));
  CYB_TRY(rules::want_weight(in, 3));
  CYB_TRY(rules::want_dims(in, 1, rules::with_last(in[0], in[1].dims.back())));
  CYB_TRY(rules::want_dims(in, 2, std::array{Dim(attrs.i(0)), in[1].dims.back()}));
  CYB_TRY(rules::want_dims(in, 3, std::array{in[0].dims.back(), Dim(attrs.i(0))}));
  return rules::one(in[0].dtype, in[0].dims);
}

/// y + (alpha / rank) ((x A^T) Bm^T).
Result<void> reference_lora(const RefCall& call) {
  const ref::Values y(call.inputs[0]), x(call.inputs[1]), down(call.inputs[2]), up(call.inputs[3]);
  ref::Results out(call.outputs[0]);
  const auto n = static_cast<std::size_t>(call.inputs[0].shape.back()),
             k = static_cast<std::size_t>(call.inputs[1].shape.back());
  const auto r = static_cast<std::size_t>(call.attrs.i(0));
  const float factor = call.attrs.f(1) / static_cast<float>(r);
  std::vector<float> low(r);
  for (std::size_t row = 0; row * n < y.size(); ++row) {
    for (std::size_t i = 0; i < r; ++i)
      low[i] = ref::dot(x.data() + row * k, down.data() + i * k, k);
    for (std::size_t i = 0; i < n; ++i) {
      out.data()[row * n + i] =
          y[row * n + i] + factor * ref::dot(low.data(), up.data() + i * r, r);
    }
  }
  out.finish();
  return {};
}

bool lora_encoded(const Attrs&, std::size_t input) {
  return input >= 2;
}

/// x [N, K], W [E, M, K], idx i32 [N, k] -> [N, k, M].
Result<std::vector<TensorSpec>> infer_routed(const Attrs&, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_weight(in, 1));
  CYB_TRY(rules::want_dtype(in, 2, DType::kI32));
  CYB_TRY(rules::want_rank(in, 0, 2));
  CYB_TRY(rules::want_rank(in, 1, 3));
  CYB_TRY(rules::want_rank(in, 2, 2));
  CYB_TRY(rules::want_dims(in, 1, std::array{in[1].dims[0], in[1].dims[1], in[0].dims[1]}));
  CYB_TRY(rules::want_dims(in, 2, std::array{in[0].dims[0], in[2].dims[1]}));
  return rules::one(in[0].dtype, {in[0].dims[0], in[2].dims[1], in[1].dims[1]});
}

Result<void> reference_routed(const RefCall& call) {
  const ref::Values x(call.inputs[0]);
  const ref::Rows w(call.inputs[1]);
  ref::Results y(call.outputs[0]);
  const Shape& out = call.outputs[0].shape;
  const std::size_t per_row = ref::extent(out, 1), m = ref::extent(out, 2), k = w.length();
  const std::int64_t experts = call.inputs[1].shape[0];
  std::vector<float> scratch(k);
  for (std::size_t i = 0; i < ref::extent(out, 0) * per_row; ++i) {
    const std::int64_t e = ref::integer_at(call.inputs[2], i);
    if (e < 0 || e >= experts)
      return fail(invalid_input("Op::RoutedMatmul: an expert out of range"));
    for (std::size_t r = 0; r < m; ++r) {
      const float* row = w.read(static_cast<std::size_t>(e) * m + r, scratch.data());
      y.data()[i * m + r] = ref::dot(row, x.data() + i / per_row * k, k);
    }
  }
  y.finish();
  return {};
}

bool routed_encoded(const Attrs&, std::size_t input) {
  return input == 1;
}

}  // namespace

OpImpl impl_BatchMatmul() {
  return {.infer = infer_batch_matmul, .reference = reference_batch_matmul};
}
OpImpl impl_Gemm() {
  return {.attrs = kGemmAttrs, .infer = infer_gemm, .reference = reference_gemm};
}
OpImpl impl_Kron() {
  return {.infer = infer_kron, .reference = reference_kron};
}
OpImpl impl_LoraApply() {
  return {.attrs = kLoraAttrs,
          .infer = infer_lora,
          .reference = reference_lora,
          .encoded_input = lora_encoded};
}
OpImpl impl_RoutedMatmul() {
  return {.infer = infer_routed, .reference = reference_routed, .encoded_input = routed_encoded};
}

}  // namespace cyb
