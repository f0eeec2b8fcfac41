// Sdpa (tag 20): Q [B,H,S,D], K [B,Hk,T,D], V [B,Hk,T,Dv], mask bool or f32, broadcast to
// [B,H,S,T]. Query row i has position a = T-S+i; allowed keys: j <= a if causal, j > a-window, mask
// true. s_j = (Q·K_j)·scale; s = c·tanh(s/c); + float mask; p = softmax over the allowed keys; y =
// sum p_j V_j. Key j goes to lane j mod 8 in both sums; a key that is not allowed adds nothing; a
// row without keys is zero.
#include "ops/attention/sdpa.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/values.hpp"

namespace cyb {

SdpaAttrs SdpaAttrs::from(const Attrs& a) {
  return {a.u32(0), a.u32(1), a.u32(2), a.i(3) != 0, a.f(4), a.f(5), a.u32(6)};
}

Attrs SdpaAttrs::to_attrs() const {
  return {{std::int64_t{num_heads}, std::int64_t{kv_heads}, std::int64_t{head_dim},
           std::int64_t{causal}, scale, softcap, std::int64_t{window}}};
}

std::span<const AttrSpec> sdpa_attr_specs() {
  static constexpr std::array kAttrs = {
      AttrSpec{"num_heads", AttrKind::kU32}, AttrSpec{"kv_heads", AttrKind::kU32},
      AttrSpec{"head_dim", AttrKind::kU32},  AttrSpec{"causal", AttrKind::kU8},
      AttrSpec{"scale", AttrKind::kF32},     AttrSpec{"softcap", AttrKind::kF32},
      AttrSpec{"window", AttrKind::kU32}};
  return kAttrs;
}

namespace {

using rules::Specs;

Result<void> check_sdpa_attrs(const Attrs& attrs) {
  const auto a = SdpaAttrs::from(attrs);
  if (a.num_heads == 0) return fail(rules::bad_payload("num_heads"));
  if (a.kv_heads == 0 || a.num_heads % a.kv_heads != 0) return fail(rules::bad_payload("kv_heads"));
  if (a.head_dim == 0) return fail(rules::bad_payload("head_dim"));
  if (attrs.i(3) > 1) return fail(rules::bad_payload("causal"));
  if (!std::isfinite(a.scale)) return fail(rules::bad_payload("scale"));
  if (!std::isfinite(a.softcap) || a.softcap < 0.0F) return fail(rules::bad_payload("softcap"));
  return {};
}

Result<void> check_mask(Specs in, const Dim& heads) {
  const TensorSpec& mask = in[3];
  if (mask.dtype != DType::kBool && mask.dtype != DType::kF32) {
    return fail(rules::bad_dtype(3, mask.dtype));
  }
  const TensorSpec full{DType::kF32, {in[0].dims[0], heads, in[0].dims[2], in[1].dims[2]}};
  CYB_ASSIGN(const std::vector<Dim> dims, rules::broadcast(full, mask));
  if (dims.size() != 4) return fail(rules::bad_shape(dims_text(mask.dims), dims_text(full.dims)));
  return {};
}

/// Which keys a query row may see, and what a float mask adds.
class Mask {
 public:
  Mask(const TensorView& view, std::size_t t) : view_(view), t_(t) {
    std::size_t stride = 1;
    for (std::size_t i = 0; i < 4 && view.present(); ++i) {
      if (i >= view.shape.rank()) break;
      const std::size_t dim = ref::extent(view.shape, view.shape.rank() - 1 - i);
      if (dim != 1) strides_[3 - i] = stride;
      stride *= dim;
    }
  }
  /// -Inf: not allowed.
  float at(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    if (!view_.present()) return 0.0F;
    const std::size_t k = b * strides_[0] + h * strides_[1] + i * strides_[2] + j * strides_[3];
    if (view_.dtype == DType::kF32) return view_.as<float>()[k];
    return view_.data[k] != std::byte{0} ? 0.0F : -std::numeric_limits<float>::infinity();
  }
  bool present() const { return view_.present(); }
  bool is_float() const { return view_.dtype == DType::kF32; }
  std::size_t keys() const { return t_; }

 private:
  TensorView view_;
  std::size_t t_;
  std::array<std::size_t, 4> strides_{};
};

struct Geometry {
  std::size_t heads, kv_heads, s, t, d, dv;
  float scale, softcap;
  std::size_t window;
  bool causal;
};

Geometry geometry(const RefCall& call) {
  const auto a = SdpaAttrs::from(call.attrs);
  const Shape &q = call.inputs[0].shape, &v = call.inputs[2].shape;
  const float scale = a.scale != 0.0F
                          ? a.scale
                          : static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.head_dim)));
  return {ref::extent(q, 1),
          ref::extent(v, 1),
          ref::extent(q, 2),
          ref::extent(v, 2),
          ref::extent(q, 3),
          ref::extent(v, 3),
          scale,
          a.softcap,
          a.window,
          a.causal};
}

/// Scratch of one thread.
struct Row {
  std::vector<float> p;       // [T] scores, then weights
  std::vector<bool> allowed;  // [T]
  std::vector<float> acc;     // [8, Dv]
};

/// Scores of one query row; returns their maximum.
float score(const Geometry& g, const float* q, const float* k, const Mask& mask,
            std::array<std::size_t, 3> at, Row& row) {
  const std::size_t a = g.t - g.s + at[2];
  const std::size_t end = g.causal ? a + 1 : g.t;
  const std::size_t begin = g.window > 0 && a + 1 > g.window ? a + 1 - g.window : 0;
  float largest = -std::numeric_limits<float>::infinity();
  row.allowed.assign(g.t, false);
  for (std::size_t j = begin; j < end; ++j) {
    const float added = mask.at(at[0], at[1], at[2], j);
    if (added == -std::numeric_limits<float>::infinity()) continue;
    float s = ref::dot(q, k + j * g.d, g.d) * g.scale;
    if (g.softcap > 0.0F) s = g.softcap * math::tanh_f32(s / g.softcap);
    if (mask.present() && mask.is_float()) s = s + added;
    row.allowed[j] = true;
    row.p[j] = s;
    if (s > largest) largest = s;
  }
  return largest;
}

void attend(const Geometry& g, const float* v, float largest, Row& row, float* y) {
  ref::Lanes total{};
  for (std::size_t j = 0; j < g.t; ++j) {
    if (!row.allowed[j]) continue;
    row.p[j] = math::exp_f32(row.p[j] - largest);
    total[j % ref::kLanes] = total[j % ref::kLanes] + row.p[j];
  }
  const float sum = ref::fold(total);
  row.acc.assign(ref::kLanes * g.dv, 0.0F);
  bool any = false;
  for (std::size_t j = 0; j < g.t; ++j) {
    if (!row.allowed[j]) continue;
    any = true;
    const float p = row.p[j] / sum;
    float* acc = row.acc.data() + j % ref::kLanes * g.dv;
    for (std::size_t d = 0; d < g.dv; ++d) acc[d] = acc[d] + p * v[j * g.dv + d];
  }
  for (std::size_t d = 0; d < g.dv; ++d) {
    ref::Lanes lanes;
    for (std::size_t l = 0; l < ref::kLanes; ++l) lanes[l] = row.acc[l * g.dv + d];
    y[d] = any ? ref::fold(lanes) : 0.0F;
  }
}

Result<void> reference_sdpa(const RefCall& call) {
  const Geometry g = geometry(call);
  const std::size_t batch = ref::extent(call.inputs[0].shape, 0);
  const ref::Values q(call.inputs[0]), k(call.inputs[1]), v(call.inputs[2]);
  const Mask mask(ref::input(call, 3), g.t);
  ref::Results y(call.outputs[0]);
  if (g.t < g.s) return fail(shape_mismatch("Sdpa", "T >= S", "fewer keys than queries"));
  const std::size_t n = batch * g.heads;
  ref::parallel(call.pool, n, n * g.s * g.t * g.d, [&](std::size_t begin, std::size_t end) {
    Row row{std::vector<float>(g.t), {}, {}};
    for (std::size_t bh = begin; bh < end; ++bh) {
      const std::size_t b = bh / g.heads, h = bh % g.heads;
      const std::size_t kv = b * g.kv_heads + h / (g.heads / g.kv_heads);
      for (std::size_t i = 0; i < g.s; ++i) {
        const float* query = q.data() + (bh * g.s + i) * g.d;
        const float largest = score(g, query, k.data() + kv * g.t * g.d, mask, {b, h, i}, row);
        attend(g, v.data() + kv * g.t * g.dv, largest, row, y.data() + (bh * g.s + i) * g.dv);
      }
    }
  });
  y.finish();
  return {};
}

}  // namespace

Result<std::vector<TensorSpec>> infer_sdpa(const Attrs& attrs, Specs in) {
  CYB_TRY(check_sdpa_attrs(attrs));
  const auto a = SdpaAttrs::from(attrs);
  CYB_TRY(rules::want_float(in, 0));
  for (std::size_t k = 0; k < 3; ++k) {
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_TRY(rules::want_rank(in, k, 4));
  }
  const Dim b = in[0].dims[0], h = a.num_heads, hk = a.kv_heads, d = a.head_dim;
  const Dim t = in[1].dims[2], dv = in[2].dims[3];
  CYB_TRY(rules::want_dims(in, 0, std::vector<Dim>{b, h, in[0].dims[2], d}));
  CYB_TRY(rules::want_dims(in, 1, std::vector<Dim>{b, hk, t, d}));
  CYB_TRY(rules::want_dims(in, 2, std::vector<Dim>{b, hk, t, dv}));
  if (!rules::at(in, 3).absent) CYB_TRY(check_mask(in, h));
  return rules::one(in[0].dtype, {b, h, in[0].dims[2], dv});
}

OpImpl impl_Sdpa() {
  return {.attrs = sdpa_attr_specs(), .infer = infer_sdpa, .reference = reference_sdpa};
}

}  // namespace cyb
