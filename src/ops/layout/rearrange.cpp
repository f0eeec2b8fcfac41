// Fixed rearrangements of elements: DepthToSpace, SpaceToDepth, PixelShuffle, PixelUnshuffle,
// Unpatchify, ReverseSequence, Trilu, Col2Im.
#include <algorithm>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// Every element of y is the element of x at source(index of y).
template <class F>
Result<void> rearrange(const RefCall& call, F source) {
  const TensorView& x = call.inputs[0];
  return ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    ref::for_each_index(call.outputs[0].shape, [&](std::size_t i, const ref::Index& index) {
      call.outputs[0].as<T>()[i] = x.as<T>()[source(index)];
    });
    return {};
  });
}

Result<Dim> quotient(const Specs in, std::size_t axis, std::int64_t k) {
  const auto out = in[0].dims[axis].divided_by(k);
  if (out) return *out;
  if (!in[0].dims[axis].is_constant()) return Dim::anonymous();
  return fail(rules::bad_shape(dims_text(in[0].dims), "a multiple of the block"));
}

constexpr std::int64_t kMaxBlock = 4096;

/// x [B, C r^2, H, W] -> [B, C, H r, W r].
Result<std::vector<TensorSpec>> to_space(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  const std::int64_t r = attrs.i(0);
  if (r < 1 || r > kMaxBlock) return fail(rules::bad_payload("block"));
  CYB_ASSIGN(const Dim c, quotient(in, 1, r * r));
  return rules::one(in[0].dtype, {in[0].dims[0], c, in[0].dims[2] * r, in[0].dims[3] * r});
}

Result<std::vector<TensorSpec>> to_depth(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 4));
  const std::int64_t r = attrs.i(0);
  if (r < 1 || r > kMaxBlock) return fail(rules::bad_payload("block"));
  CYB_ASSIGN(const Dim h, quotient(in, 2, r));
  CYB_ASSIGN(const Dim w, quotient(in, 3, r));
  return rules::one(in[0].dtype, {in[0].dims[0], in[0].dims[1] * (r * r), h, w});
}

/// Channel of x for channel c and offset (i, j) of y: c r^2 + i r + j, or depth first.
Result<void> space(const RefCall& call, bool depth_first) {
  const Shape &x = call.inputs[0].shape, &y = call.outputs[0].shape;
  const auto r = static_cast<std::size_t>(call.attrs.i(0)), channels = ref::extent(y, 1);
  const auto strides = ref::strides_of(x);
  return rearrange(call, [=](const ref::Index& at) {
    const std::size_t offset = at[2] % r * r + at[3] % r;
    const std::size_t c = depth_first ? offset * channels + at[1] : at[1] * r * r + offset;
    return at[0] * strides[0] + c * strides[1] + at[2] / r * strides[2] + at[3] / r;
  });
}

Result<void> depth(const RefCall& call, bool depth_first) {
  const Shape& x = call.inputs[0].shape;
  const auto r = static_cast<std::size_t>(call.attrs.i(0)), channels = ref::extent(x, 1);
  const auto strides = ref::strides_of(x);
  return rearrange(call, [=](const ref::Index& at) {
    const std::size_t c = depth_first ? at[1] % channels : at[1] / (r * r);
    const std::size_t offset = depth_first ? at[1] / channels : at[1] % (r * r);
    return at[0] * strides[0] + c * strides[1] + (at[2] * r + offset / r) * strides[2] + at[3] * r +
           offset % r;
  });
}

constexpr std::array kR = {AttrSpec{"r", AttrKind::kU32}};
constexpr std::array kDepthAttrs = {AttrSpec{"block", AttrKind::kU32},
                                    AttrSpec{"mode", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_depth_to_space(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 1, 1, "mode"));
  return to_space(attrs, in);
}
Result<void> reference_depth_to_space(const RefCall& call) {
  return space(call, call.attrs.i(1) == 0);
}
Result<void> reference_space_to_depth(const RefCall& call) {
  return depth(call, call.attrs.i(1) == 0);
}
Result<std::vector<TensorSpec>> infer_space_to_depth(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 1, 1, "mode"));
  return to_depth(attrs, in);
}
Result<void> reference_shuffle(const RefCall& call) {
  return space(call, false);
}
Result<void> reference_unshuffle(const RefCall& call) {
  return depth(call, false);
}

constexpr std::array kPatchAttrs = {
    AttrSpec{"p", AttrKind::kU32}, AttrSpec{"channels", AttrKind::kU32},
    AttrSpec{"grid_h", AttrKind::kU32}, AttrSpec{"grid_w", AttrKind::kU32},
    AttrSpec{"order", AttrKind::kU8}};

/// x [B, gh gw, p p C] -> [B, C, gh p, gw p].
Result<std::vector<TensorSpec>> infer_unpatchify(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_at_most(attrs, 4, 1, "order"));
  for (std::size_t k = 0; k < 4; ++k) {
    if (attrs.i(k) < 1 || attrs.i(k) > (std::int64_t{1} << 20))
      return fail(rules::bad_payload(kPatchAttrs[k].name));
  }
  const std::int64_t p = attrs.i(0), c = attrs.i(1), gh = attrs.i(2), gw = attrs.i(3);
  CYB_TRY(rules::want_dims(in, 0, std::array{in[0].dims[0], Dim(gh) * gw, Dim(p) * p * c}));
  return rules::one(in[0].dtype, {in[0].dims[0], c, Dim(gh) * p, Dim(gw) * p});
}

Result<void> reference_unpatchify(const RefCall& call) {
  const auto p = static_cast<std::size_t>(call.attrs.i(0)),
             c = static_cast<std::size_t>(call.attrs.i(1)),
             gw = static_cast<std::size_t>(call.attrs.i(3));
  const auto strides = ref::strides_of(call.inputs[0].shape);
  const bool channels_first = call.attrs.i(4) != 0;
  return rearrange(call, [=](const ref::Index& at) {
    const std::size_t patch = at[2] / p * gw + at[3] / p, i = at[2] % p, j = at[3] % p;
    const std::size_t inside = channels_first ? (at[1] * p + i) * p + j : (i * p + j) * c + at[1];
    return at[0] * strides[0] + patch * strides[1] + inside;
  });
}

constexpr std::array kReverseAttrs = {AttrSpec{"batch_axis", AttrKind::kI32},
                                      AttrSpec{"time_axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_reverse(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  CYB_ASSIGN(const std::size_t batch, rules::axis(attrs.i(0), in[0].rank(), "batch_axis"));
  CYB_ASSIGN(const std::size_t time, rules::axis(attrs.i(1), in[0].rank(), "time_axis"));
  if (batch == time) return fail(rules::bad_payload("time_axis"));
  CYB_TRY(rules::want_dims(in, 1, std::span(&in[0].dims[batch], 1)));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_reverse(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t rank = shape.rank(), batch = ref::axis_of(call.attrs.i(0), rank),
                    time = ref::axis_of(call.attrs.i(1), rank);
  const auto lengths = ref::integers(call.inputs[1]);
  for (const std::int64_t n : lengths) {
    if (n < 0 || n > shape[time])
      return fail(invalid_input("Op::ReverseSequence: a length out of range"));
  }
  const auto strides = ref::strides_of(shape);
  return rearrange(call, [&](const ref::Index& index) {
    ref::Index at = index;
    const auto n = static_cast<std::size_t>(lengths[index[batch]]);
    if (index[time] < n) at[time] = n - 1 - index[time];
    return ref::dot(at, strides, rank);
  });
}

constexpr std::array kTriluAttrs = {AttrSpec{"upper", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_trilu(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  if (!rules::at(in, 1).absent) CYB_TRY(rules::want_list(in, 1));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_trilu(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const TensorView k_view = ref::input(call, 1);
  const std::int64_t limit = std::int64_t{1} << 40;
  const std::int64_t k =
      k_view.present() ? std::clamp(ref::integer_at(k_view, 0), -limit, limit) : 0;
  const bool upper = call.attrs.i(0) != 0;
  const std::size_t rank = x.shape.rank();
  return ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    ref::for_each_index(x.shape, [&](std::size_t i, const ref::Index& at) {
      const std::int64_t diagonal =
          static_cast<std::int64_t>(at[rank - 1]) - static_cast<std::int64_t>(at[rank - 2]);
      const bool keep = upper ? diagonal >= k : diagonal <= k;
      call.outputs[0].as<T>()[i] = keep ? x.as<T>()[i] : T{0};
    });
    return {};
  });
}

constexpr std::array kColAttrs = {AttrSpec{"dilations", AttrKind::kU32List},
                                  AttrSpec{"pads", AttrKind::kU32List},
                                  AttrSpec{"strides", AttrKind::kU32List}};

Result<std::vector<TensorSpec>> infer_col2im(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_rank(in, 0, 3));
  CYB_TRY(rules::want_list(in, 1));
  CYB_TRY(rules::want_list(in, 2));
  const auto n = rules::length_of(in, 1), m = rules::length_of(in, 2);
  if (!n || n != m || *n < 1 || *n > 6)
    return fail(rules::bad_shape(dims_text(in[1].dims), "one length per axis"));
  const auto axes = static_cast<std::size_t>(*n);
  const bool fits = attrs.list(0).size() == axes && attrs.list(1).size() == 2 * axes &&
                    attrs.list(2).size() == axes;
  if (!fits) return fail(rules::bad_payload("pads"));
  if (std::ranges::count(attrs.list(2), 0) != 0) return fail(rules::bad_payload("strides"));
  std::vector<Dim> dims(axes + 2, Dim::anonymous());
  dims[0] = in[0].dims[0];
  if (const auto block = rules::constants_of(in, 2)) {
    std::int64_t volume = 1;
    for (const std::int64_t k : *block) {
      if (k < 1 || k > kMaxBlock) return fail(rules::bad_payload("block"));
      volume *= k;
      if (volume > (std::int64_t{1} << 31)) return fail(rules::bad_payload("block"));
    }
    CYB_ASSIGN(dims[1], quotient(in, 1, volume));
  }
  if (const auto* image = rules::value_of(in, 1)) std::ranges::copy(*image, dims.begin() + 2);
  return rules::one(in[0].dtype, std::move(dims));
}

/// Number of block positions along each axis; their product must be x's last dimension.
Result<std::vector<std::int64_t>> positions(const RefCall& call,
                                            std::span<const std::int64_t> image,
                                            std::span<const std::int64_t> block) {
  std::vector<std::int64_t> counts;
  std::int64_t total = 1;
  for (std::size_t d = 0; d < image.size(); ++d) {
    const std::int64_t dilation = call.attrs.list(0)[d], stride = call.attrs.list(2)[d];
    const std::int64_t length =
        image[d] + call.attrs.list(1)[d] + call.attrs.list(1)[image.size() + d];
    const std::int64_t room = length - dilation * (block[d] - 1) - 1;
    counts.push_back(room < 0 ? 0 : room / stride + 1);
    total *= counts.back();
  }
  if (total != call.inputs[0].shape[2]) {
    return fail(shape_mismatch("Col2Im", std::to_string(total) + " positions",
                               call.inputs[0].shape.text()));
  }
  return counts;
}

/// Sums every column entry into its pixel: block offset (major), then position.
Result<void> reference_col2im(const RefCall& call) {
  const auto image = ref::integers(call.inputs[1]), block = ref::integers(call.inputs[2]);
  CYB_ASSIGN(const std::vector<std::int64_t> counts, positions(call, image, block));
  const std::size_t axes = image.size();
  const Shape x = call.inputs[0].shape;
  std::int64_t volume = 1, pixels = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    volume *= block[d];
    pixels *= image[d];
  }
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]);
    ref::Outputs<C> y(call.outputs[0]);
    std::fill_n(y.data(), y.size(), C{0});
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto flat = static_cast<std::int64_t>(i);
      std::int64_t position = flat % x[2], offset = flat / x[2] % volume;
      const std::int64_t plane = flat / x[2] / volume;  // batch and channel
      std::int64_t at = 0, stride = 1;
      for (std::size_t d = axes; d-- > 0;) {
        const std::int64_t k = offset % block[d], p = position % counts[d];
        offset /= block[d];
        position /= counts[d];
        const std::int64_t pixel =
            p * call.attrs.list(2)[d] + k * call.attrs.list(0)[d] - call.attrs.list(1)[d];
        at = at < 0 || pixel < 0 || pixel >= image[d] ? -1 : at + pixel * stride;
        stride *= image[d];
      }
      if (at < 0) continue;
      C& out = y[static_cast<std::size_t>(plane * pixels + at)];
      out = out + in[i];
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_DepthToSpace() {
  return {
      .attrs = kDepthAttrs, .infer = infer_depth_to_space, .reference = reference_depth_to_space};
}
OpImpl impl_SpaceToDepth() {
  return {
      .attrs = kDepthAttrs, .infer = infer_space_to_depth, .reference = reference_space_to_depth};
}
OpImpl impl_PixelShuffle() {
  return {.attrs = kR, .infer = to_space, .reference = reference_shuffle};
}
OpImpl impl_PixelUnshuffle() {
  return {.attrs = kR, .infer = to_depth, .reference = reference_unshuffle};
}
OpImpl impl_Unpatchify() {
  return {.attrs = kPatchAttrs, .infer = infer_unpatchify, .reference = reference_unpatchify};
}
OpImpl impl_ReverseSequence() {
  return {.attrs = kReverseAttrs, .infer = infer_reverse, .reference = reference_reverse};
}
OpImpl impl_Trilu() {
  return {.attrs = kTriluAttrs, .infer = infer_trilu, .reference = reference_trilu};
}
OpImpl impl_Col2Im() {
  return {.attrs = kColAttrs, .infer = infer_col2im, .reference = reference_col2im};
}

}  // namespace cyb
