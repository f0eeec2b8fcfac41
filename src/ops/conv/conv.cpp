// Convolutions (cross-correlation, NCHW): Conv (tag 412) of 1 to 3 axes and the fixed forms Conv1d,
// Conv2d, Conv3d (80-82), CausalConv1d (84), DepthwiseConv (85), PatchEmbed (103).
#include <algorithm>

#include "ops/conv/geometry.hpp"
#include "ops/op_impl.hpp"

namespace cyb {
namespace {

using conv::List;
using conv::Window;
using rules::Specs;

constexpr AttrSpec u32(std::string_view name) {
  return {name, AttrKind::kU32};
}

Result<void> check_operands(Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_parameter(in, 1));
  if (!rules::at(in, 2).absent) CYB_TRY(rules::want_parameter(in, 2));
  return {};
}

constexpr std::array kAttrs = {
    AttrSpec{"strides", AttrKind::kU32List}, AttrSpec{"dilations", AttrKind::kU32List},
    AttrSpec{"pads", AttrKind::kU32List}, u32("groups"), AttrSpec{"auto_pad", AttrKind::kU8}};

Window window_of(const Attrs& a) {
  return {{}, a.list(0), a.list(1), a.list(2), a.i(4), false};
}

Result<std::vector<TensorSpec>> infer_general(const Attrs& attrs, Specs in) {
  CYB_TRY(check_operands(in));
  return conv::infer_conv(in, window_of(attrs), attrs.i(3));
}

Result<void> reference_general(const RefCall& call) {
  return conv::run_conv(call, window_of(call.attrs), call.attrs.i(3));
}

constexpr std::array kAttrs1d = {u32("kernel"), u32("stride"), u32("padding"), u32("dilation"),
                                 u32("groups")};
constexpr std::array kAttrs2d = {u32("kernel_h"),   u32("kernel_w"),   u32("stride_h"),
                                 u32("stride_w"),   u32("padding_h"),  u32("padding_w"),
                                 u32("dilation_h"), u32("dilation_w"), u32("groups")};
constexpr std::array kAttrs3d = {
    u32("kernel_f"),   u32("kernel_h"),   u32("kernel_w"),  u32("stride_f"),  u32("stride_h"),
    u32("stride_w"),   u32("padding_f"),  u32("padding_h"), u32("padding_w"), u32("dilation_f"),
    u32("dilation_h"), u32("dilation_w"), u32("groups")};

/// kernel, stride, padding, dilation of N axes each, then groups.
template <std::size_t N>
Window fixed_window(const Attrs& a) {
  Window w;
  for (std::size_t k = 0; k < N; ++k) {
    w.kernel.push_back(a.i(k));
    w.strides.push_back(a.i(N + k));
    w.dilations.push_back(a.i(3 * N + k));
  }
  for (std::size_t k = 0; k < 2 * N; ++k) w.pads.push_back(a.i(2 * N + k % N));
  return w;
}

template <std::size_t N>
Result<std::vector<TensorSpec>> infer_fixed(const Attrs& attrs, Specs in) {
  CYB_TRY(check_operands(in));
  CYB_TRY(rules::want_rank(in, 0, N + 2));
  return conv::infer_conv(in, fixed_window<N>(attrs), attrs.i(4 * N));
}

template <std::size_t N>
Result<void> reference_fixed(const RefCall& call) {
  return conv::run_conv(call, fixed_window<N>(call.attrs), call.attrs.i(4 * N));
}

constexpr std::array kCausalAttrs = {u32("kernel"), u32("dilation"), u32("groups"),
                                     AttrSpec{"pad", AttrKind::kU8}};

Window causal_window(const Attrs& a) {
  Window w{{a.i(0)}, {1}, {a.i(1)}, {}, conv::kExplicit, false};
  w.pads = {a.i(1) * (a.i(0) - 1), 0};
  return w;
}

Result<std::vector<TensorSpec>> infer_causal(const Attrs& attrs, Specs in) {
  CYB_TRY(check_operands(in));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_at_most(attrs, 3, 1, "pad"));
  if (attrs.i(0) < 1) return fail(rules::bad_payload("kernel"));
  CYB_TRY(conv::infer_conv(in, causal_window(attrs), attrs.i(2)));
  return rules::one(in[0].dtype, {in[0].dims[0], in[1].dims[0], in[0].dims[2]});
}

/// pad 1: the first column in place of what lies before it.
Result<void> reference_causal(const RefCall& call) {
  if (call.attrs.i(3) == 0 || call.inputs[0].shape[2] == 0) {
    return conv::run_conv(call, causal_window(call.attrs), call.attrs.i(2));
  }
  const Shape& shape = call.inputs[0].shape;
  const auto length = ref::extent(shape, 2),
             left = static_cast<std::size_t>(call.attrs.i(1) * (call.attrs.i(0) - 1));
  const std::size_t bytes = ref::element_bytes(call.inputs[0].dtype), wide = length + left;
  std::vector<std::byte> padded(ref::extent(shape, 0, 2) * wide * bytes);
  for (std::size_t row = 0; row < ref::extent(shape, 0, 2); ++row) {
    for (std::size_t i = 0; i < wide; ++i) {
      const std::size_t from = row * length + (i < left ? 0 : i - left);
      std::memcpy(padded.data() + (row * wide + i) * bytes, call.inputs[0].data + from * bytes,
                  bytes);
    }
  }
  std::vector<TensorView> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = {call.inputs[0].dtype, Shape{shape[0], shape[1], static_cast<std::int64_t>(wide)},
               padded.data()};
  Window w = causal_window(call.attrs);
  w.pads = {0, 0};
  return conv::run_conv(
      {.attrs = call.attrs, .inputs = inputs, .outputs = call.outputs, .pool = call.pool}, w,
      call.attrs.i(2));
}

constexpr std::array kDepthwiseAttrs = {u32("kernel"), u32("stride"), u32("padding"),
                                        u32("dilation")};

Window depthwise_window(const Attrs& a, std::size_t axes) {
  return {List(axes, a.i(0)),     List(axes, a.i(1)), List(axes, a.i(3)),
          List(2 * axes, a.i(2)), conv::kExplicit,    false};
}

Result<std::vector<TensorSpec>> infer_depthwise(const Attrs& attrs, Specs in) {
  CYB_TRY(check_operands(in));
  const std::size_t rank = in[0].rank();
  if (rank != 3 && rank != 4)
    return fail(rules::bad_shape(dims_text(in[0].dims), "3 or 4 dimensions"));
  CYB_TRY(rules::want_rank(in, 1, rank));
  if (!in[0].dims[1].is_constant() || in[0].dims[1].constant() < 1) {
    return fail(rules::bad_shape(dims_text(in[0].dims), "constant channels"));
  }
  CYB_TRY(rules::want_dims(in, 1, [&] {
    std::vector<Dim> want = in[1].dims;
    want[0] = in[0].dims[1];
    want[1] = 1;
    return want;
  }()));
  return conv::infer_conv(in, depthwise_window(attrs, rank - 2), in[0].dims[1].constant());
}

Result<void> reference_depthwise(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  return conv::run_conv(call, depthwise_window(call.attrs, shape.rank() - 2), shape[1]);
}

constexpr std::array kPatchAttrs = {u32("p")};

Window patch_window(const Attrs& a) {
  return {{a.i(0), a.i(0)}, {a.i(0), a.i(0)}, {}, {}, conv::kExplicit, false};
}

/// x [B, C, H, W], W [E, C, p, p] -> [B, (H/p)(W/p), E].
Result<std::vector<TensorSpec>> infer_patch(const Attrs& attrs, Specs in) {
  CYB_TRY(check_operands(in));
  CYB_TRY(rules::want_rank(in, 0, 4));
  if (attrs.i(0) < 1) return fail(rules::bad_payload("p"));
  for (std::size_t d = 2; d < 4; ++d) {
    const Dim& dim = in[0].dims[d];
    if (dim.is_constant() && dim.constant() % attrs.i(0) != 0) {
      return fail(rules::bad_shape(dims_text(in[0].dims), "multiples of the patch"));
    }
  }
  CYB_ASSIGN(const std::vector<TensorSpec> y, conv::infer_conv(in, patch_window(attrs), 1));
  const std::vector<Dim>& d = y[0].dims;
  return rules::one(in[0].dtype, {d[0], rules::product(std::array{d[2], d[3]}), d[1]});
}

Result<void> reference_patch(const RefCall& call) {
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape;
  const std::int64_t p = call.attrs.i(0);
  if (x[2] % p != 0 || x[3] % p != 0)
    return fail(shape_mismatch("PatchEmbed", "multiples of the patch", x.text()));
  const Shape y{x[0], w[0], x[2] / p, x[3] / p};
  const conv::Problem problem = conv::problem_of(x, w, y, patch_window(call.attrs), 1);
  const std::size_t n = problem.out_size(), e = problem.out_channels;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]), weight(call.inputs[1]), b(ref::input(call, 2));
    ref::Outputs<C> out(call.outputs[0]);
    conv::convolve(problem, in.data(), weight.data(), call.pool,
                   [&](std::size_t at, std::size_t o, C sum) {
                     const std::size_t image = at / (n * e), position = at % n;
                     out[(image * n + position) * e + o] = b.present() ? sum + b[o] : sum;
                   });
    out.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_Conv() {
  return {.attrs = kAttrs, .infer = infer_general, .reference = reference_general};
}
OpImpl impl_Conv1d() {
  return {.attrs = kAttrs1d, .infer = infer_fixed<1>, .reference = reference_fixed<1>};
}
OpImpl impl_Conv2d() {
  return {.attrs = kAttrs2d, .infer = infer_fixed<2>, .reference = reference_fixed<2>};
}
OpImpl impl_Conv3d() {
  return {.attrs = kAttrs3d, .infer = infer_fixed<3>, .reference = reference_fixed<3>};
}
OpImpl impl_CausalConv1d() {
  return {.attrs = kCausalAttrs, .infer = infer_causal, .reference = reference_causal};
}
OpImpl impl_DepthwiseConv() {
  return {.attrs = kDepthwiseAttrs, .infer = infer_depthwise, .reference = reference_depthwise};
}
OpImpl impl_PatchEmbed() {
  return {.attrs = kPatchAttrs, .infer = infer_patch, .reference = reference_patch};
}

}  // namespace cyb
