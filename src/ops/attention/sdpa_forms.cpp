// SdpaCross (tag 21): Sdpa without causal. SdpaWindow (22): attention inside consecutive blocks of
// w, plus bias [H,w,w]? and float mask [S/w,w,w]?, as Sdpa of each block.
#include "ops/attention/sdpa.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kCrossAttrs = {AttrSpec{"num_heads", AttrKind::kU32},
                                    AttrSpec{"head_dim", AttrKind::kU32},
                                    AttrSpec{"scale", AttrKind::kF32}};

/// K and V may have fewer heads than Q, as in Sdpa.
Result<Attrs> cross_attrs(const Attrs& a, const Dim& kv_heads) {
  if (!kv_heads.is_constant() || kv_heads.constant() < 1 || kv_heads.constant() > a.i(0))
    return fail(rules::bad_payload("num_heads"));
  return SdpaAttrs{
      a.u32(0), static_cast<std::uint32_t>(kv_heads.constant()), a.u32(1), false, a.f(2), 0.0F, 0}
      .to_attrs();
}

Result<std::vector<TensorSpec>> infer_cross(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_rank(in, 1, 4));
  CYB_ASSIGN(Attrs sdpa, cross_attrs(attrs, in[1].dims[1]));
  return op_info(OpTag::kSdpa).infer(sdpa, in);
}

Result<void> reference_cross(const RefCall& call) {
  CYB_ASSIGN(const Attrs sdpa, cross_attrs(call.attrs, call.inputs[1].shape[1]));
  return op_info(OpTag::kSdpa)
      .reference(
          {.attrs = sdpa, .inputs = call.inputs, .outputs = call.outputs, .pool = call.pool});
}

constexpr std::array kWindowAttrs = {
    AttrSpec{"num_heads", AttrKind::kU32}, AttrSpec{"head_dim", AttrKind::kU32},
    AttrSpec{"window_size", AttrKind::kU32}, AttrSpec{"scale", AttrKind::kF32}};

Result<std::vector<TensorSpec>> infer_window(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  const Dim w = attrs.i(2);
  if (attrs.i(2) < 1) return fail(rules::bad_payload("window_size"));
  const std::vector<Dim>& q = in[0].dims;
  for (std::size_t k = 0; k < 3; ++k) {
    CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
    CYB_TRY(rules::want_dims(in, k, std::array{q[0], Dim(attrs.i(0)), q[2], Dim(attrs.i(1))}));
  }
  const auto blocks = q[2].divided_by(attrs.i(2));
  if (!blocks && q[2].is_constant())
    return fail(rules::bad_shape(dims_text(q), "rows in whole windows"));
  if (!rules::at(in, 3).absent) {
    CYB_TRY(rules::want_parameter(in, 3));
    CYB_TRY(rules::want_dims(in, 3, std::array{q[1], w, w}));
  }
  if (!rules::at(in, 4).absent) {
    CYB_TRY(rules::want_parameter(in, 4));
    CYB_TRY(rules::want_dims(in, 4, std::array{blocks.value_or(Dim::anonymous()), w, w}));
  }
  return rules::one(in[0].dtype, q);
}

Result<void> reference_window(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto w = call.attrs.i(2), d = shape[3];
  const auto heads = ref::extent(shape, 1), blocks = static_cast<std::size_t>(shape[2] / w),
             cells = static_cast<std::size_t>(w * w);
  if (shape[2] % w != 0)
    return fail(shape_mismatch("SdpaWindow", "rows in whole windows", shape.text()));
  const ref::Values bias(ref::input(call, 3)), mask(ref::input(call, 4));
  const Attrs attrs =
      SdpaAttrs{1, 1, static_cast<std::uint32_t>(d), false, call.attrs.f(3), 0.0F, 0}.to_attrs();
  const std::size_t bytes =
      static_cast<std::size_t>(w * d) * ref::element_bytes(call.inputs[0].dtype);
  std::vector<float> added(cells);
  for (std::size_t block = 0; block < ref::extent(shape, 0) * heads * blocks; ++block) {
    const std::size_t h = block / blocks % heads, n = block % blocks;
    for (std::size_t i = 0; i < cells; ++i) {
      added[i] = (bias.present() ? bias[h * cells + i] : 0.0F) +
                 (mask.present() ? mask[n * cells + i] : 0.0F);
    }
    const Shape part{1, 1, w, d};
    const DType dtype = call.inputs[0].dtype;
    std::vector<TensorView> inputs;
    for (std::size_t k = 0; k < 3; ++k)
      inputs.push_back({dtype, part, call.inputs[k].data + block * bytes});
    inputs.push_back(
        {DType::kF32, Shape{1, 1, w, w}, reinterpret_cast<const std::byte*>(added.data())});
    const MutableTensorView out{dtype, part, call.outputs[0].data + block * bytes};
    CYB_TRY(op_info(OpTag::kSdpa)
                .reference({.attrs = attrs, .inputs = inputs, .outputs = std::span(&out, 1)}));
  }
  return {};
}

}  // namespace

OpImpl impl_SdpaCross() {
  return {.attrs = kCrossAttrs, .infer = infer_cross, .reference = reference_cross};
}
OpImpl impl_SdpaWindow() {
  return {.attrs = kWindowAttrs, .infer = infer_window, .reference = reference_window};
}

}  // namespace cyb
