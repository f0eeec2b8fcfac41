// RmsNorm (tag 40): x [..., D], g [D]. f32: r = sqrt(sum(x·x) / D + eps); y = (x / r)·g.
#include "ops/norm/rms_norm.hpp"

#include <array>
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"eps", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_rms_norm(const Attrs& attrs, rules::Specs in) {
  if (!(attrs.f(0) >= 0.0F)) return fail(rules::bad_payload("eps"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  CYB_TRY(rules::want_nonempty(in[0], in[0].rank() - 1));
  CYB_TRY(rules::want_parameter(in, 1));
  CYB_TRY(rules::want_dims(in, 1, std::span(&in[0].dims.back(), 1)));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_rms_norm(const RefCall& call) {
  const float eps = RmsNormAttrs::from(call.attrs).eps;
  const auto d = static_cast<std::size_t>(call.inputs[0].shape.back());
  const ref::Values x(call.inputs[0]), g(call.inputs[1]);
  ref::Results y(call.outputs[0]);
  for (std::size_t at = 0; at < x.size(); at += d) {
    const float* row = x.data() + at;
    const float r = std::sqrt(ref::dot(row, row, d) / static_cast<float>(d) + eps);
    for (std::size_t i = 0; i < d; ++i) y.data()[at + i] = row[i] / r * g[i];
  }
  y.finish();
  return {};
}

}  // namespace

OpImpl impl_RmsNorm() {
  return {.attrs = kAttrs, .infer = infer_rms_norm, .reference = reference_rms_norm};
}

}  // namespace cyb
