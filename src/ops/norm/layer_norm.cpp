// LayerNorm (tag 41): x [..., D], g [D]?, b [D]? (Ba et al., arXiv 1607.06450). f32:
// m = sum(x) / D; r = sqrt(sum((x-m)^2) / D + eps); y = (x-m) / r · g + b.
#include "ops/norm/layer_norm.hpp"

#include <array>
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_layer_norm(const Attrs& attrs, rules::Specs in) {
  if (!(attrs.f(0) >= 0.0F)) return fail(rules::bad_payload("eps"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_nonempty(in[0], in[0].rank() - 1));
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (in[k].absent) continue;
    CYB_TRY(rules::want_parameter(in, k));
    CYB_TRY(rules::want_dims(in, k, std::span(&in[0].dims.back(), 1)));
  }
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_layer_norm(const RefCall& call) {
  const float eps = LayerNormAttrs::from(call.attrs).eps;
  const auto d = static_cast<std::size_t>(call.inputs[0].shape.back());
  const ref::Values x(call.inputs[0]), g(ref::input(call, 1)), b(ref::input(call, 2));
  ref::Results y(call.outputs[0]);
  std::vector<float> centred(d);
  for (std::size_t at = 0; at < x.size(); at += d) {
    const float mean = ref::sum(x.data() + at, d) / static_cast<float>(d);
    for (std::size_t i = 0; i < d; ++i) centred[i] = x[at + i] - mean;
    const float variance = ref::dot(centred.data(), centred.data(), d) / static_cast<float>(d);
    const float r = std::sqrt(variance + eps);
    for (std::size_t i = 0; i < d; ++i) {
      float v = centred[i] / r;
      if (g.present()) v = v * g[i];
      if (b.present()) v = v + b[i];
      y.data()[at + i] = v;
    }
  }
  y.finish();
  return {};
}

}  // namespace

OpImpl impl_LayerNorm() {
  return {.attrs = kAttrs, .infer = infer_layer_norm, .reference = reference_layer_norm};
}

}  // namespace cyb
