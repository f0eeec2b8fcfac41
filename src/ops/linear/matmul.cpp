// Matmul: y[..., n] = sum_k x[..., k] W[n, k] (+ b[n]). W [N, K] of any weight dtype is
// dequantised, then used; W [..., N, K] is a batched product of activations.
#include <algorithm>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

using rules::Specs;

Result<std::vector<Dim>> batched_dims(Specs in) {
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  const auto batch = [](const TensorSpec& s) {
    return TensorSpec{s.dtype, std::vector<Dim>(s.dims.begin(), s.dims.end() - 2)};
  };
  CYB_ASSIGN(std::vector<Dim> dims, rules::broadcast(batch(in[0]), batch(in[1])));
  dims.push_back(in[0].dims[in[0].rank() - 2]);
  dims.push_back(in[1].dims[in[1].rank() - 2]);
  return dims;
}

Result<std::vector<TensorSpec>> infer_matmul(const Attrs&, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_weight(in, 1));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_min_rank(in, 1, 2));
  const TensorSpec &x = in[0], &w = in[1];
  const Dim& n = w.dims[w.rank() - 2];
  if (!rules::merge(x.dims.back(), w.dims.back())) {
    return fail(
        rules::bad_shape(dims_text(w.dims), "a last dimension of " + x.dims.back().text({})));
  }
  CYB_TRY(rules::want_nonempty(w, w.rank() - 1));
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_parameter(in, 2));
    CYB_TRY(rules::want_dims(in, 2, std::span(&n, 1)));
  }
  if (w.rank() == 2) return rules::one(x.dtype, rules::with_last(x, n));
  CYB_ASSIGN(std::vector<Dim> dims, batched_dims(in));
  return rules::one(x.dtype, std::move(dims));
}

/// y [M, N] = x [M, K] W^T + b. A row of W is decoded once, then used for every row of x.
void multiply(const RefCall& call, const float* x, std::size_t m_rows, const TensorView& w,
              float* y) {
  const ref::Rows weight(w);
  const std::size_t n_out = weight.count(), k = weight.length();
  const ref::Values bias(ref::input(call, 2));
  ref::parallel(call.pool, n_out, n_out * k * m_rows, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scratch(k);
    for (std::size_t n = begin; n < end; ++n) {
      const float* row = weight.read(n, scratch.data());
      for (std::size_t m = 0; m < m_rows; ++m) {
        const float s = ref::dot(x + m * k, row, k);
        y[m * n_out + n] = bias.present() ? s + bias[n] : s;
      }
    }
  });
}

/// Offset of batch `index` of the output in an operand whose leading dimensions broadcast, in
/// matrices.
std::size_t batch_offset(const Shape& out, const Shape& operand, std::size_t index) {
  const std::size_t batch_rank = out.rank() - 2, own = operand.rank() - 2;
  std::size_t offset = 0, stride = 1;
  for (std::size_t i = 0; i < batch_rank; ++i) {
    const std::size_t dim = ref::extent(out, batch_rank - 1 - i);
    const std::size_t at = index % dim;
    index /= dim;
    if (i >= own) continue;
    const std::size_t own_dim = ref::extent(operand, own - 1 - i);
    if (own_dim != 1) offset += at * stride;
    stride *= own_dim;
  }
  return offset;
}

Result<void> reference_matmul(const RefCall& call) {
  const TensorView &xv = call.inputs[0], &wv = call.inputs[1];
  const ref::Values x(xv);
  ref::Results y(call.outputs[0]);
  if (wv.shape.rank() == 2) {
    multiply(call, x.data(), ref::extent(xv.shape, 0, xv.shape.rank() - 1), wv, y.data());
    y.finish();
    return {};
  }
  const Shape& out = call.outputs[0].shape;
  const std::size_t r = out.rank(), m = ref::extent(out, r - 2), n = ref::extent(out, r - 1);
  const auto k = static_cast<std::size_t>(wv.shape.back());
  const std::size_t batches = ref::extent(out, 0, r - 2);
  for (std::size_t b = 0; b < batches; ++b) {
    const std::size_t xo = batch_offset(out, xv.shape, b), wo = batch_offset(out, wv.shape, b);
    const TensorView matrix{wv.dtype, Shape{static_cast<std::int64_t>(n), wv.shape.back()},
                            wv.data + wo * n * k * ref::element_bytes(wv.dtype)};
    multiply(call, x.data() + xo * m * k, m, matrix, y.data() + b * m * n);
  }
  y.finish();
  return {};
}

bool encoded(const Attrs&, std::size_t input) {
  return input == 1;
}

}  // namespace

OpImpl impl_Matmul() {
  return {.infer = infer_matmul, .reference = reference_matmul, .encoded_input = encoded};
}

}  // namespace cyb
