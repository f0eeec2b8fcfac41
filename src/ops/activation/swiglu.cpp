// SwiGlu (tag 63). One input x [..., 2F] = [a|b]: Silu(a)·b. With weights: Silu(x Wg^T)·(x Wu^T),
// then times Wd^T if it is given. Wg, Wu [F, E], Wd [O, F].
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

using rules::Specs;

Result<std::vector<TensorSpec>> infer_halves(const TensorSpec& x) {
  if (x.dims.back().is_constant() && x.dims.back().constant() % 2 != 0) {
    return fail(rules::bad_shape(dims_text(x.dims), "an even last dimension"));
  }
  const Dim half = x.dims.back().divided_by(2).value_or(Dim::anonymous());
  return rules::one(x.dtype, rules::with_last(x, half));
}

Result<std::vector<TensorSpec>> infer_swiglu(const Attrs&, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  if (in.size() == 1) return infer_halves(in[0]);
  if (in.size() == 2) return fail(rules::bad_count(2, "1, 3 or 4"));
  for (std::size_t k = 1; k < in.size(); ++k) {
    CYB_TRY(rules::want_weight(in, k));
    CYB_TRY(rules::want_rank(in, k, 2));
  }
  const Dim& e = in[0].dims.back();
  const Dim& f = in[1].dims[0];
  CYB_TRY(rules::want_dims(in, 1, std::vector<Dim>{f, e}));
  CYB_TRY(rules::want_dims(in, 2, std::vector<Dim>{f, e}));
  if (in.size() == 3) return rules::one(in[0].dtype, rules::with_last(in[0], f));
  CYB_TRY(rules::want_dims(in, 3, std::vector<Dim>{in[3].dims[0], f}));
  return rules::one(in[0].dtype, rules::with_last(in[0], in[3].dims[0]));
}

float gate(float a, float b) {
  const double v = a;
  return static_cast<float>(v / (1.0 + math::exp_f64(-v))) * b;
}

/// y [M, F] = gate(x Wg^T, x Wu^T).
std::vector<float> gated(const float* x, std::size_t m_rows, const RefCall& call) {
  const ref::Rows wg(call.inputs[1]), wu(call.inputs[2]);
  const std::size_t f = wg.count(), e = wg.length();
  std::vector<float> y(m_rows * f);
  ref::parallel(call.pool, f, 2 * f * e * m_rows, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scratch(2 * e);
    for (std::size_t n = begin; n < end; ++n) {
      const float* g = wg.read(n, scratch.data());
      const float* u = wu.read(n, scratch.data() + e);
      for (std::size_t m = 0; m < m_rows; ++m) {
        y[m * f + n] = gate(ref::dot(x + m * e, g, e), ref::dot(x + m * e, u, e));
      }
    }
  });
  return y;
}

Result<void> reference_swiglu(const RefCall& call) {
  const ref::Values x(call.inputs[0]);
  ref::Results y(call.outputs[0]);
  const Shape& shape = call.inputs[0].shape;
  const std::size_t rows = ref::extent(shape, 0, shape.rank() - 1);
  const auto last = static_cast<std::size_t>(shape.back());
  if (call.inputs.size() == 1) {
    const std::size_t f = last / 2;
    for (std::size_t r = 0; r < rows; ++r) {
      const float* row = x.data() + r * last;
      for (std::size_t i = 0; i < f; ++i) y.data()[r * f + i] = gate(row[i], row[f + i]);
    }
    y.finish();
    return {};
  }
  const std::vector<float> h = gated(x.data(), rows, call);
  const std::size_t f = rows == 0 ? 0 : h.size() / rows;
  if (call.inputs.size() == 3) {
    std::copy(h.begin(), h.end(), y.data());
    y.finish();
    return {};
  }
  const ref::Rows wd(call.inputs[3]);
  const std::size_t n_out = wd.count();
  std::vector<float> scratch(wd.length());
  for (std::size_t n = 0; n < n_out; ++n) {
    const float* row = wd.read(n, scratch.data());
    for (std::size_t m = 0; m < rows; ++m) {
      y.data()[m * n_out + n] = ref::dot(h.data() + m * f, row, f);
    }
  }
  y.finish();
  return {};
}

bool encoded(const Attrs&, std::size_t input) {
  return input >= 1;
}

}  // namespace

OpImpl impl_SwiGlu() {
  return {.infer = infer_swiglu, .reference = reference_swiglu, .encoded_input = encoded};
}

}  // namespace cyb
