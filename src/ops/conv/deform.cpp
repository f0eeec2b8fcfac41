// DeformConv (tag 424): 2-D convolution whose taps move by offsets (Dai et al., arXiv 1703.06211),
// with a mask. x [B,C,H,W], W [O,C/g,kh,kw], offset [B,og·kh·kw·2,oh,ow], b [O]?, mask
// [B,og·kh·kw,oh,ow]?. Samples are bilinear; outside the map is 0.
#include <cmath>

#include "ops/conv/geometry.hpp"
#include "ops/op_impl.hpp"

namespace cyb {
namespace {

using conv::Window;
using rules::Specs;

constexpr std::array kAttrs = {
    AttrSpec{"strides", AttrKind::kU32List}, AttrSpec{"dilations", AttrKind::kU32List},
    AttrSpec{"pads", AttrKind::kU32List}, AttrSpec{"groups", AttrKind::kU32},
    AttrSpec{"offset_groups", AttrKind::kU32}};

Window window_of(const Attrs& a) {
  return {{}, a.list(0), a.list(1), a.list(2), conv::kExplicit, false};
}

Result<std::vector<TensorSpec>> infer_deform(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  CYB_TRY(rules::want_rank(in, 0, 4));
  CYB_TRY(rules::want_rank(in, 1, 4));
  std::vector<TensorSpec> operands = {in[0], in[1]};
  if (!rules::at(in, 3).absent) operands.push_back(in[3]);
  CYB_ASSIGN(std::vector<TensorSpec> y, conv::infer_conv(operands, window_of(attrs), attrs.i(3)));
  CYB_ASSIGN(const conv::List kernel, conv::kernel_of(in[1]));
  const std::int64_t taps = kernel[0] * kernel[1], groups = attrs.i(4);
  const Dim& c = in[0].dims[1];
  if (groups < 1 || groups > 4096 || (c.is_constant() && c.constant() % groups != 0))
    return fail(rules::bad_payload("offset_groups"));
  const std::vector<Dim>& d = y[0].dims;
  CYB_TRY(rules::want_dims(in, 2, std::array{d[0], Dim(groups) * (taps * 2), d[2], d[3]}));
  if (!rules::at(in, 4).absent)
    CYB_TRY(rules::want_dims(in, 4, std::array{d[0], Dim(groups) * taps, d[2], d[3]}));
  return y;
}

template <class C>
double sample(const C* plane, std::int64_t h, std::int64_t w, double y, double x) {
  if (!(y > -1.0 && y < static_cast<double>(h) && x > -1.0 && x < static_cast<double>(w)))
    return 0.0;
  const double r = std::floor(y), c = std::floor(x);
  double sum = 0.0;
  for (int k = 0; k < 4; ++k) {
    const double row = r + (k < 2 ? 0 : 1), column = c + k % 2;
    const double share = (1.0 - std::fabs(y - row)) * (1.0 - std::fabs(x - column));
    const auto i = static_cast<std::int64_t>(row), j = static_cast<std::int64_t>(column);
    if (i >= 0 && i < h && j >= 0 && j < w) sum += share * static_cast<double>(plane[i * w + j]);
  }
  return sum;
}

Result<void> reference_deform(const RefCall& call) {
  const Shape &xs = call.inputs[0].shape, &ws = call.inputs[1].shape, &ys = call.outputs[0].shape;
  const auto groups = static_cast<std::size_t>(call.attrs.i(3)),
             offset_groups = static_cast<std::size_t>(call.attrs.i(4));
  const conv::Problem p = conv::problem_of(xs, ws, ys, window_of(call.attrs), groups);
  const conv::Axis &h = p.axes[1], &w = p.axes[2];
  const std::size_t volume = p.volume(), cells = p.out_size(), channels = groups * p.in_channels,
                    outs = groups * p.out_channels;
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), weight(call.inputs[1]), offset(call.inputs[2]),
        b(ref::input(call, 3)), mask(ref::input(call, 4));
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t n = 0; n < y.size(); ++n) {
      const std::size_t cell = n % cells, o = n / cells % outs, image = n / (cells * outs),
                        group = o / p.out_channels;
      const auto row = static_cast<std::int64_t>(cell) / w.out,
                 column = static_cast<std::int64_t>(cell) % w.out;
      ref::Sum<C> sum;
      for (std::size_t k = 0; k < p.in_channels * volume; ++k) {
        const std::size_t c = group * p.in_channels + k / volume, tap = k % volume;
        const std::size_t moved =
            (image * offset_groups + c / (channels / offset_groups)) * volume + tap;
        const auto i = static_cast<std::int64_t>(tap) / w.kernel,
                   j = static_cast<std::int64_t>(tap) % w.kernel;
        const double at_y = static_cast<double>(conv::tap(h, row, i)) +
                            static_cast<double>(offset[2 * moved * cells + cell]);
        const double at_x = static_cast<double>(conv::tap(w, column, j)) +
                            static_cast<double>(offset[(2 * moved + 1) * cells + cell]);
        auto v = static_cast<C>(
            sample(x.data() + (image * channels + c) * p.in_size(), h.in, w.in, at_y, at_x));
        if (mask.present()) v = v * mask[moved * cells + cell];
        sum.add_at(k, v * weight[o * p.in_channels * volume + k]);
      }
      y[n] = b.present() ? sum.value() + b[o] : sum.value();
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_DeformConv() {
  return {.attrs = kAttrs, .infer = infer_deform, .reference = reference_deform};
}

}  // namespace cyb
