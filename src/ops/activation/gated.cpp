// GeGlu (tag 62): a·Gelu(b) of halves [a|b], or Gelu(x Wg^T)·(x Wu^T), then Wd. ShiftedInner (320)
// and ShiftedWedge (321): products of a vector with its own rotations.
#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kMode = {AttrSpec{"mode", AttrKind::kU8}};

float gelu(std::int64_t mode, float v) {
  const double x = v;
  if (mode == 0) return static_cast<float>(math::gelu_f64(x));
  return static_cast<float>(mode == 1 ? math::gelu_tanh_f64(x) : math::swish_f64(x, 1.702));
}

/// The shapes are those of SwiGlu.
Result<std::vector<TensorSpec>> infer_geglu(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 2, "mode"));
  return op_info(OpTag::kSwiGlu).infer({}, in);
}

/// y [rows, N] = x [rows, K] W^T.
std::vector<float> project(const float* x, std::size_t rows, const TensorView& weight) {
  const ref::Rows w(weight);
  std::vector<float> y(rows * w.count()), scratch(w.length());
  for (std::size_t n = 0; n < w.count(); ++n) {
    const float* row = w.read(n, scratch.data());
    for (std::size_t m = 0; m < rows; ++m)
      y[m * w.count() + n] = ref::dot(x + m * w.length(), row, w.length());
  }
  return y;
}

Result<void> reference_geglu(const RefCall& call) {
  const ref::Values x(call.inputs[0]);
  ref::Results y(call.outputs[0]);
  const Shape& shape = call.inputs[0].shape;
  const std::size_t rows = ref::extent(shape, 0, shape.rank() - 1),
                    last = static_cast<std::size_t>(shape.back());
  const std::int64_t mode = call.attrs.i(0);
  if (call.inputs.size() == 1) {
    const std::size_t f = last / 2;
    for (std::size_t i = 0; i < rows * f; ++i) {
      const float* row = x.data() + i / f * last;
      y.data()[i] = row[i % f] * gelu(mode, row[f + i % f]);
    }
    y.finish();
    return {};
  }
  std::vector<float> h = project(x.data(), rows, call.inputs[1]);
  const std::vector<float> up = project(x.data(), rows, call.inputs[2]);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = gelu(mode, h[i]) * up[i];
  if (call.inputs.size() == 4) h = project(h.data(), rows, call.inputs[3]);
  std::copy(h.begin(), h.end(), y.data());
  y.finish();
  return {};
}

bool encoded(const Attrs&, std::size_t input) {
  return input >= 1;
}

constexpr std::array kShifts = {AttrSpec{"shifts", AttrKind::kU32List}};

/// h, c [..., D] -> [..., D·n], D the inner dimension, one block of D per shift.
Result<std::vector<TensorSpec>> infer_shifted(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, in[0].dtype));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_dims(in, 1, in[0].dims));
  if (attrs.list(0).empty() || attrs.list(0).size() > 4096)
    return fail(rules::bad_payload("shifts"));
  return rules::one(
      in[0].dtype,
      rules::with_last(in[0], in[0].dims.back() * static_cast<std::int64_t>(attrs.list(0).size())));
}

template <class F>
Result<void> shifted(const RefCall& call, F f) {
  const ref::Values h(call.inputs[0]), c(call.inputs[1]);
  ref::Results y(call.outputs[0]);
  const auto d = static_cast<std::size_t>(call.inputs[0].shape.back());
  const auto& shifts = call.attrs.list(0);
  std::size_t out = 0;
  for (std::size_t row = 0; row < h.size(); row += d) {
    for (const std::int64_t shift : shifts) {
      for (std::size_t i = 0; i < d; ++i) {
        const std::size_t j = (i + static_cast<std::size_t>(shift)) % d;
        y.data()[out++] = f(h[row + i], h[row + j], c[row + i], c[row + j]);
      }
    }
  }
  y.finish();
  return {};
}

Result<void> reference_inner(const RefCall& call) {
  return shifted(call, [](float hi, float, float, float cj) {
    return static_cast<float>(math::swish_f64(static_cast<double>(hi * cj)));
  });
}
Result<void> reference_wedge(const RefCall& call) {
  return shifted(call, [](float hi, float hj, float ci, float cj) { return hi * cj - hj * ci; });
}

}  // namespace

OpImpl impl_GeGlu() {
  return {
      .attrs = kMode, .infer = infer_geglu, .reference = reference_geglu, .encoded_input = encoded};
}
OpImpl impl_ShiftedInner() {
  return {.attrs = kShifts, .infer = infer_shifted, .reference = reference_inner};
}
OpImpl impl_ShiftedWedge() {
  return {.attrs = kShifts, .infer = infer_shifted, .reference = reference_wedge};
}

}  // namespace cyb
