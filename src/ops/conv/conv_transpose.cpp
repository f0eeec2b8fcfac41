// Transposed convolutions: ConvTranspose (tag 413) of 1 to 3 axes, ConvTranspose2d (83),
// ConvTranspose1d (300). y[o, p] sums x[c, (p + before - k d) / s] W[c, o, k] over (c, k), in the
// reference order of W's (channel, taps); places without an input keep theirs and add nothing.
#include <algorithm>

#include "ops/conv/geometry.hpp"
#include "ops/op_impl.hpp"

namespace cyb {
namespace {

using conv::List;
using rules::Specs;

constexpr AttrSpec u32(std::string_view name) {
  return {name, AttrKind::kU32};
}
constexpr AttrSpec list(std::string_view name) {
  return {name, AttrKind::kU32List};
}

struct Transposed {
  conv::Window window;
  List output_padding, output_shape;
  std::int64_t groups = 1;
};

/// (L - 1) s + d (k - 1) + 1 + output_padding, without pads.
Dim full_length(const Transposed& t, std::size_t a, const Dim& length) {
  const std::int64_t extra = t.output_padding.empty() ? 0 : t.output_padding[a];
  return length * t.window.stride(a) + Dim(t.window.span(a) - t.window.stride(a) + extra);
}

bool is_same(const Transposed& t) {
  return t.window.auto_pad == conv::kSameUpper || t.window.auto_pad == conv::kSameLower;
}

Dim output_length(const Transposed& t, std::size_t a, const Dim& length) {
  if (!t.output_shape.empty()) return t.output_shape[a];
  if (is_same(t)) return length * t.window.stride(a);
  const bool padded = t.window.auto_pad == conv::kExplicit && !t.window.pads.empty();
  const std::int64_t pads = padded ? t.window.pads[a] + t.window.pads[t.window.axes() + a] : 0;
  return full_length(t, a, length) + Dim(-pads);
}

/// Positions cut from the front of the full result.
std::int64_t front(const Transposed& t, std::size_t a, std::int64_t in, std::int64_t out) {
  const bool computed = !t.output_shape.empty() || is_same(t);
  if (!computed)
    return t.window.auto_pad == conv::kExplicit && !t.window.pads.empty() ? t.window.pads[a] : 0;
  const std::int64_t total = std::max<std::int64_t>(full_length(t, a, in).constant() - out, 0);
  return t.window.auto_pad == conv::kSameUpper ? total / 2 : total - total / 2;
}

Result<std::vector<TensorSpec>> infer_transposed(Specs in, Transposed t) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_parameter(in, 1));
  CYB_TRY(rules::want_min_rank(in, 0, 3));
  CYB_TRY(rules::want_rank(in, 1, in[0].rank()));
  CYB_ASSIGN(const List kernel, conv::kernel_of(in[1]));
  if (!t.window.kernel.empty() && t.window.kernel != kernel) {
    return fail(rules::bad_shape(dims_text(in[1].dims), "the kernel of the attributes"));
  }
  t.window.kernel = kernel;
  const std::size_t axes = kernel.size();
  CYB_TRY(conv::check_window(t.window, axes));
  const auto fits = [axes](const List& l) { return l.empty() || l.size() == axes; };
  if (!fits(t.output_padding)) return fail(rules::bad_payload("output_padding"));
  if (!fits(t.output_shape)) return fail(rules::bad_payload("output_shape"));
  const Dim& channels = in[0].dims[1];
  if (t.groups < 1 || (channels.is_constant() && channels.constant() % t.groups != 0)) {
    return fail(rules::bad_payload("groups"));
  }
  if (!rules::merge(in[1].dims[0], channels))
    return fail(rules::bad_shape(dims_text(in[1].dims), "the channels of input 0"));
  std::vector<Dim> dims = {in[0].dims[0], in[1].dims[1] * t.groups};
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_parameter(in, 2));
    CYB_TRY(rules::want_dims(in, 2, std::span(&dims[1], 1)));
  }
  for (std::size_t a = 0; a < axes; ++a) {
    dims.push_back(output_length(t, a, in[0].dims[2 + a]));
    if (dims.back().is_constant() && dims.back().constant() < 0) {
      return fail(rules::bad_shape(dims_text(in[0].dims), "a longer input"));
    }
  }
  return rules::one(in[0].dtype, std::move(dims));
}

/// Input position of tap k of output o, or -1.
std::int64_t source(const conv::Axis& axis, std::int64_t o, std::int64_t k) {
  const std::int64_t at = o + axis.before - k * axis.dilation;
  return at >= 0 && at % axis.stride == 0 && at / axis.stride < axis.in ? at / axis.stride : -1;
}

struct Planes {
  const conv::Axes& axes;
  std::size_t in_size, volume, channels, step;  // step: weights between two input channels
};

template <class C>
C value_at(const Planes& p, const C* x, const C* w, const std::array<std::int64_t, 3>& o) {
  ref::Sum<C> sum;
  const auto& a = p.axes;
  for (std::size_t c = 0; c < p.channels; ++c) {
    std::size_t k = 0;
    for (std::int64_t i = 0; i < a[0].kernel; ++i) {
      const std::int64_t z = source(a[0], o[0], i);
      for (std::int64_t j = 0; j < a[1].kernel; ++j) {
        const std::int64_t r = source(a[1], o[1], j);
        for (std::int64_t l = 0; l < a[2].kernel; ++l, ++k) {
          const std::int64_t q = source(a[2], o[2], l);
          if (z < 0 || r < 0 || q < 0) continue;
          const auto at = static_cast<std::size_t>((z * a[1].in + r) * a[2].in + q);
          sum.add_at(c * p.volume + k, ref::multiply(x[c * p.in_size + at], w[c * p.step + k]));
        }
      }
    }
  }
  return sum.value();
}

Result<void> run_transposed(const RefCall& call, Transposed t) {
  const Shape &x = call.inputs[0].shape, &w = call.inputs[1].shape, &y = call.outputs[0].shape;
  t.window.kernel.assign(w.dims().begin() + 2, w.dims().end());
  conv::Window plain = t.window;
  plain.auto_pad = conv::kExplicit;
  plain.pads.clear();
  conv::Axes axes = conv::axes_of(plain, x.dims().subspan(2), y.dims().subspan(2));
  for (std::size_t a = 0; a < t.window.axes(); ++a) {
    axes[3 - t.window.axes() + a].before = front(t, a, x[2 + a], y[2 + a]);
  }
  const auto groups = static_cast<std::size_t>(t.groups);
  const std::size_t outs = ref::extent(w, 1), volume = ref::extent(w, 2, w.rank());
  const std::size_t channels = ref::extent(x, 1) / groups, size = ref::extent(x, 2, x.rank());
  const Planes planes{axes, size, volume, channels, outs * volume};
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> in(call.inputs[0]), weight(call.inputs[1]), b(ref::input(call, 2));
    ref::Outputs<C> out(call.outputs[0]);
    std::size_t at = 0;
    for (std::size_t n = 0; n < ref::extent(x, 0) * groups * outs; ++n) {
      const std::size_t o = n % (groups * outs), group = o / outs;
      const C* plane = in.data() + (n / (groups * outs) * groups + group) * channels * size;
      const C* taps = weight.data() + group * channels * outs * volume + o % outs * volume;
      for (std::int64_t i = 0; i < axes[0].out * axes[1].out * axes[2].out; ++i, ++at) {
        const std::array position = {i / (axes[1].out * axes[2].out), i / axes[2].out % axes[1].out,
                                     i % axes[2].out};
        const C sum = value_at(planes, plane, taps, position);
        out[at] = b.present() ? sum + b[o] : sum;
      }
    }
    out.finish();
    return {};
  });
}

constexpr std::array kAttrs = {list("strides"),
                               list("dilations"),
                               list("pads"),
                               list("output_padding"),
                               list("output_shape"),
                               u32("groups"),
                               AttrSpec{"auto_pad", AttrKind::kU8}};

Transposed general(const Attrs& a) {
  return {{{}, a.list(0), a.list(1), a.list(2), a.i(6), false}, a.list(3), a.list(4), a.i(5)};
}
Result<std::vector<TensorSpec>> infer_general(const Attrs& attrs, Specs in) {
  return infer_transposed(in, general(attrs));
}
Result<void> reference_general(const RefCall& call) {
  return run_transposed(call, general(call.attrs));
}

constexpr std::array kAttrs1d = {u32("kernel"),         u32("stride"),   u32("padding"),
                                 u32("output_padding"), u32("dilation"), u32("groups")};
constexpr std::array kAttrs2d = {u32("kernel_h"),
                                 u32("kernel_w"),
                                 u32("stride_h"),
                                 u32("stride_w"),
                                 u32("padding_h"),
                                 u32("padding_w"),
                                 u32("output_padding_h"),
                                 u32("output_padding_w"),
                                 u32("dilation_h"),
                                 u32("dilation_w"),
                                 u32("groups")};

/// kernel, stride, padding, output_padding, dilation of N axes each, then groups.
template <std::size_t N>
Transposed fixed(const Attrs& a) {
  Transposed t;
  for (std::size_t k = 0; k < N; ++k) {
    t.window.kernel.push_back(a.i(k));
    t.window.strides.push_back(a.i(N + k));
    t.output_padding.push_back(a.i(3 * N + k));
    t.window.dilations.push_back(a.i(4 * N + k));
  }
  for (std::size_t k = 0; k < 2 * N; ++k) t.window.pads.push_back(a.i(2 * N + k % N));
  t.groups = a.i(5 * N);
  return t;
}
template <std::size_t N>
Result<std::vector<TensorSpec>> infer_fixed(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_rank(in, 0, N + 2));
  return infer_transposed(in, fixed<N>(attrs));
}
template <std::size_t N>
Result<void> reference_fixed(const RefCall& call) {
  return run_transposed(call, fixed<N>(call.attrs));
}

}  // namespace

OpImpl impl_ConvTranspose() {
  return {.attrs = kAttrs, .infer = infer_general, .reference = reference_general};
}
OpImpl impl_ConvTranspose1d() {
  return {.attrs = kAttrs1d, .infer = infer_fixed<1>, .reference = reference_fixed<1>};
}
OpImpl impl_ConvTranspose2d() {
  return {.attrs = kAttrs2d, .infer = infer_fixed<2>, .reference = reference_fixed<2>};
}

}  // namespace cyb
