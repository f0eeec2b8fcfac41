// Recurrences over state: Scan (tag 311, Mamba's selective scan, arXiv 2312.00752), GatedDelta
// (312, arXiv 2412.06464), LinearAttention (443), CausalConvState (444). The state of Scan and
// GatedDelta is RefCall::state, or zeros; the other two take and give it as tensors.
#include <cmath>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kScanAttrs = {AttrSpec{"kind", AttrKind::kU8},
                                   AttrSpec{"layer", AttrKind::kU32}};
constexpr std::array kLayer = {AttrSpec{"layer", AttrKind::kU32}};

/// The caller's state, or zeros of its own.
class State {
 public:
  State(const RefCall& call, std::size_t n) {
    if (!call.state.empty()) {
      data_ = call.state[0].as<float>();
      return;
    }
    own_.resize(n);
    data_ = own_.data();
  }
  float* data() noexcept { return data_; }

 private:
  std::vector<float> own_;
  float* data_ = nullptr;
};

/// x, dt [B,S,C], A [C,N], Bm, Cm [B,S,N], D [C]? -> y [B,S,C].
Result<std::vector<TensorSpec>> infer_scan(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 0, "kind"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_rank(in, 2, 2));
  const Dim &b = in[0].dims[0], &s = in[0].dims[1], &c = in[0].dims[2], &n = in[2].dims[1];
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (!in[k].absent) CYB_TRY(rules::want_parameter(in, k));
  }
  CYB_TRY(rules::want_dims(in, 1, in[0].dims));
  CYB_TRY(rules::want_dims(in, 2, std::array{c, n}));
  CYB_TRY(rules::want_dims(in, 3, std::array{b, s, n}));
  CYB_TRY(rules::want_dims(in, 4, std::array{b, s, n}));
  if (!rules::at(in, 5).absent) CYB_TRY(rules::want_dims(in, 5, std::array{c}));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<std::vector<TensorSpec>> scan_state(const Attrs&, Specs in) {
  return rules::one(DType::kF32, {in[0].dims[0], in[0].dims[2], in[2].dims[1]});
}

/// s = e^(dt A) s + dt Bm x; y = Cm·s + D x.
Result<void> reference_scan(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t steps = ref::extent(shape, 1), channels = ref::extent(shape, 2),
                    n = ref::extent(call.inputs[2].shape, 1);
  const ref::Values x(call.inputs[0]), dt(call.inputs[1]), a(call.inputs[2]), bm(call.inputs[3]),
      cm(call.inputs[4]), d(ref::input(call, 5));
  ref::Results y(call.outputs[0]);
  State state(call, ref::extent(shape, 0) * channels * n);
  for (std::size_t row = 0; row < ref::extent(shape, 0) * steps; ++row) {
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t at = row * channels + c;
      float* s = state.data() + (row / steps * channels + c) * n;
      const float input = dt[at] * x[at];
      for (std::size_t k = 0; k < n; ++k)
        s[k] = math::exp_f32(dt[at] * a[c * n + k]) * s[k] + input * bm[row * n + k];
      const float out = ref::dot(cm.data() + row * n, s, n);
      y.data()[at] = d.present() ? out + d[c] * x[at] : out;
    }
  }
  y.finish();
  return {};
}

/// q, k [B,H,S,Dk], v [B,H,S,Dv], g, beta [B,H,S] -> y [B,H,S,Dv].
Result<std::vector<TensorSpec>> infer_delta(const Attrs&, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_rank(in, 2, 4));
  const std::vector<Dim>& q = in[0].dims;
  CYB_TRY(rules::want_dims(in, 1, q));
  CYB_TRY(rules::want_dims(in, 2, std::array{q[0], q[1], q[2], in[2].dims[3]}));
  for (std::size_t k = 3; k < 5; ++k)
    CYB_TRY(rules::want_dims(in, k, std::array{q[0], q[1], q[2]}));
  return rules::one(in[0].dtype, in[2].dims);
}

Result<std::vector<TensorSpec>> delta_state(const Attrs&, Specs in) {
  return rules::one(DType::kF32, {in[0].dims[0], in[0].dims[1], in[0].dims[3], in[2].dims[3]});
}

/// The state [Dk, Dv] of one head.
struct Memory {
  float* s;
  std::size_t dk, dv;
  void scale(std::size_t k, float factor) const {
    for (std::size_t j = 0; j < dv; ++j) s[k * dv + j] = factor * s[k * dv + j];
  }
  /// Column j of s, weighted by `w`.
  float read(const float* w, std::size_t j) const {
    ref::Sum<float> sum;
    for (std::size_t k = 0; k < dk; ++k) sum.add(w[k] * s[k * dv + j]);
    return sum.value();
  }
  void write(const float* key, std::size_t j, float v) const {
    for (std::size_t k = 0; k < dk; ++k) s[k * dv + j] = s[k * dv + j] + key[k] * v;
  }
};

/// s = e^g s; d = beta (v - k^T s); s += k d^T; y = q^T s.
Result<void> reference_delta(const RefCall& call) {
  const Shape &qs = call.inputs[0].shape, &vs = call.inputs[2].shape;
  const std::size_t heads = ref::extent(qs, 0, 2), steps = ref::extent(qs, 2),
                    dk = ref::extent(qs, 3), dv = ref::extent(vs, 3);
  const ref::Values q(call.inputs[0]), k(call.inputs[1]), v(call.inputs[2]), g(call.inputs[3]),
      beta(call.inputs[4]);
  ref::Results y(call.outputs[0]);
  State state(call, heads * dk * dv);
  for (std::size_t row = 0; row < heads * steps; ++row) {
    const Memory m{state.data() + row / steps * dk * dv, dk, dv};
    const float decay = math::exp_f32(g[row]);
    for (std::size_t i = 0; i < dk; ++i) m.scale(i, decay);
    const float *key = k.data() + row * dk, *query = q.data() + row * dk;
    for (std::size_t j = 0; j < dv; ++j) {
      m.write(key, j, beta[row] * (v[row * dv + j] - m.read(key, j)));
      y.data()[row * dv + j] = m.read(query, j);
    }
  }
  y.finish();
  return {};
}

constexpr std::array kLinearAttrs = {
    AttrSpec{"q_heads", AttrKind::kU32}, AttrSpec{"kv_heads", AttrKind::kU32},
    AttrSpec{"rule", AttrKind::kU8}, AttrSpec{"scale", AttrKind::kF32}};

enum Rule : std::int64_t { kLinear, kGated, kDelta, kGatedDelta };
bool is_gated(std::int64_t rule) {
  return rule == kGated || rule == kGatedDelta;
}
bool is_delta(std::int64_t rule) {
  return rule == kDelta || rule == kGatedDelta;
}

/// q [B,T,Hq·Dk], k [B,T,Hk·Dk], v [B,T,Hk·Dv], past [B,Hk,Dk,Dv]?, decay [B,T,Hk or Hk·Dk]?,
/// beta [B,T,Hk or 1]? -> y [B,T,Hq·Dv], state.
Result<std::vector<TensorSpec>> infer_linear(const Attrs& attrs, Specs in) {
  const std::int64_t hq = attrs.i(0), hk = attrs.i(1), rule = attrs.i(2);
  if (hq < 1 || hk < 1 || hq % hk != 0) return fail(rules::bad_payload("kv_heads"));
  CYB_TRY(rules::want_at_most(attrs, 2, kGatedDelta, "rule"));
  for (std::size_t k = 0; k < 3; ++k) {
    CYB_TRY(rules::want_float(in, k));
    CYB_TRY(rules::want_rank(in, k, 3));
  }
  const Dim &b = in[0].dims[0], &t = in[0].dims[1];
  const auto dk = in[0].dims[2].divided_by(hq), dv = in[2].dims[2].divided_by(hk);
  if (!dk || !dv) return fail(rules::bad_payload("q_heads"));
  CYB_TRY(rules::want_dims(in, 1, std::array{b, t, *dk * hk}));
  CYB_TRY(rules::want_dims(in, 2, std::array{b, t, *dv * hk}));
  const std::vector<Dim> state = {b, hk, *dk, *dv};
  for (std::size_t k = 3; k < in.size(); ++k) {
    if (!in[k].absent) CYB_TRY(rules::want_float(in, k));
  }
  if (!rules::at(in, 3).absent) CYB_TRY(rules::want_dims(in, 3, state));
  const bool decay = !rules::at(in, 4).absent, beta = !rules::at(in, 5).absent;
  if (decay != is_gated(rule) || beta != is_delta(rule))
    return fail(rules::bad_count(in.size(), "the inputs of its rule"));
  for (std::size_t k = 4; k < in.size(); ++k) {
    if (!in[k].absent) CYB_TRY(rules::want_rank(in, k, 3));
  }
  if (decay) {
    const bool fits = in[4].dims[2] == Dim(hk) || in[4].dims[2] == *dk * hk;
    if (!fits)
      return fail(rules::bad_shape(dims_text(in[4].dims), "one decay per head or key element"));
  }
  if (beta && !(in[5].dims[2] == Dim(hk) || in[5].dims[2] == Dim(1)))
    return fail(rules::bad_shape(dims_text(in[5].dims), "one beta per head or step"));
  const DType state_type = rules::at(in, 3).absent ? in[0].dtype : in[3].dtype;
  return std::vector{TensorSpec{in[0].dtype, {b, t, *dv * hq}}, TensorSpec{state_type, state}};
}

Result<void> reference_linear(const RefCall& call) {
  const auto hq = static_cast<std::size_t>(call.attrs.i(0)),
             hk = static_cast<std::size_t>(call.attrs.i(1));
  const Shape &qs = call.inputs[0].shape, &vs = call.inputs[2].shape;
  const std::size_t batch = ref::extent(qs, 0), steps = ref::extent(qs, 1),
                    dk = ref::extent(qs, 2) / hq, dv = ref::extent(vs, 2) / hk;
  const ref::Values q(call.inputs[0]), k(call.inputs[1]), v(call.inputs[2]),
      past(ref::input(call, 3)), decay(ref::input(call, 4)), beta(ref::input(call, 5));
  ref::Results y(call.outputs[0]);
  std::vector<float> state(batch * hk * dk * dv);
  if (past.present()) std::copy_n(past.data(), state.size(), state.begin());
  const std::size_t decays = decay.present() ? ref::extent(call.inputs[4].shape, 2) : 0,
                    betas = beta.present() ? ref::extent(call.inputs[5].shape, 2) : 0;
  const float scale = call.attrs.f(3) != 0.0F
                          ? call.attrs.f(3)
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(dk)));
  for (std::size_t row = 0; row < batch * steps; ++row) {
    for (std::size_t h = 0; h < hk; ++h) {
      const Memory m{state.data() + (row / steps * hk + h) * dk * dv, dk, dv};
      const float *key = k.data() + (row * hk + h) * dk, *value = v.data() + (row * hk + h) * dv;
      for (std::size_t i = 0; i < dk && decays != 0; ++i)
        m.scale(i, math::exp_f32(decay[row * decays + (decays == hk ? h : h * dk + i)]));
      for (std::size_t j = 0; j < dv; ++j) {
        const float write =
            betas != 0 ? beta[row * betas + (betas == 1 ? 0 : h)] * (value[j] - m.read(key, j))
                       : value[j];
        m.write(key, j, write);
        for (std::size_t g = h * (hq / hk); g < (h + 1) * (hq / hk); ++g) {
          y.data()[(row * hq + g) * dv + j] = scale * m.read(q.data() + (row * hq + g) * dk, j);
        }
      }
    }
  }
  y.finish();
  ref::Results last(call.outputs[1]);
  std::copy(state.begin(), state.end(), last.data());
  last.finish();
  return {};
}

constexpr std::array kConvAttrs = {AttrSpec{"activation", AttrKind::kU8}};

/// x [B,C,L], W [C,1,k], b [C]?, past [B,C,k-1]? -> y [B,C,L], the last k-1 columns.
Result<std::vector<TensorSpec>> infer_conv_state(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 1, "activation"));
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_rank(in, 1, 3));
  const std::vector<Dim>& x = in[0].dims;
  if (!in[1].dims[2].is_constant() || in[1].dims[2].constant() < 1)
    return fail(rules::bad_shape(dims_text(in[1].dims), "a constant kernel"));
  CYB_TRY(rules::want_dims(in, 1, std::array{x[1], Dim(1), in[1].dims[2]}));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_dims(in, 2, std::array{x[1]}));
  const std::vector<Dim> state = {x[0], x[1], in[1].dims[2].constant() - 1};
  if (!rules::at(in, 3).absent) CYB_TRY(rules::want_dims(in, 3, state));
  return std::vector{TensorSpec{in[0].dtype, x}, TensorSpec{in[0].dtype, state}};
}

Result<void> reference_conv_state(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t length = ref::extent(shape, 2), channels = ref::extent(shape, 1),
                    k = ref::extent(call.inputs[1].shape, 2);
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), w(call.inputs[1]), b(ref::input(call, 2)),
        past(ref::input(call, 3));
    ref::Outputs<C> y(call.outputs[0]), last(call.outputs[1]);
    std::vector<C> line(length + k - 1);
    for (std::size_t row = 0; row < ref::extent(shape, 0, 2); ++row) {
      const std::size_t c = row % channels;
      for (std::size_t i = 0; i + 1 < k; ++i)
        line[i] = past.present() ? past[row * (k - 1) + i] : C{0};
      std::copy_n(x.data() + row * length, length,
                  line.begin() + static_cast<std::ptrdiff_t>(k) - 1);
      for (std::size_t i = 0; i < length; ++i) {
        ref::Sum<C> sum;
        for (std::size_t t = 0; t < k; ++t) sum.add(line[i + t] * w[c * k + t]);
        const C v = b.present() ? sum.value() + b[c] : sum.value();
        y[row * length + i] =
            call.attrs.i(0) == 0 ? v : static_cast<C>(math::swish_f64(static_cast<double>(v)));
      }
      for (std::size_t i = 0; i + 1 < k; ++i) last[row * (k - 1) + i] = line[length + i];
    }
    y.finish();
    last.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Scan() {
  return {
      .attrs = kScanAttrs, .infer = infer_scan, .reference = reference_scan, .state = scan_state};
}
OpImpl impl_GatedDelta() {
  return {
      .attrs = kLayer, .infer = infer_delta, .reference = reference_delta, .state = delta_state};
}
OpImpl impl_LinearAttention() {
  return {.attrs = kLinearAttrs, .infer = infer_linear, .reference = reference_linear};
}
OpImpl impl_CausalConvState() {
  return {.attrs = kConvAttrs, .infer = infer_conv_state, .reference = reference_conv_state};
}

}  // namespace cyb
